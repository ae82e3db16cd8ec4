package main

// rows are those of the table, in its order.
var rows = []row{
	{1, "calls/s on one hot token, 64 goroutines of one process", oneProcess},
	{2, "calls/s on one hot token, 4 processes of 16 goroutines", fourProcesses},
	{3, "a lone caller's booking, p50", loneCaller},
	{4, "a lone caller's booking in a large log, p50", loneCallerInLargeLog},
	{5, "calls/s on a pool of 1,000 tokens", poolOfThousand},
	{6, "Remaining in a large log, p50", remainingOfLargeLog},
	{7, "calls/s of a lone caller, by cost and by limits", costsAndLimits},
	{8, "memory in Redis for each call", memory},
	{9, "MemoryStore: Wait granted at once", memoryWait},
	{10, "Transport over a bare http.Transport", transport},
	{11, "waiting goroutines", waiting},
	{12, "a fleet of 8 processes of 16 workers on 3 tokens", fleet},
	{13, "commands in Redis's SLOWLOG", slowlog},
	{14, "a lone caller's booking, by algorithm", scriptTimes},
	{15, "calls/s on one hot token, 64 goroutines of one process, against callers combined into the same commands", shareOfFloor},
}
