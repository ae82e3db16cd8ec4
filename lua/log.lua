-- log.lua: the exact log of an account, whatever it is kept in.
--
-- A log is one run of entries, or several. A run only grows at its end: its
-- slots never decrease. A booking that overtakes others begins a second run, and
-- requests of other scopes have runs of their own, so that a limit that covers
-- some scopes only counts some runs. What a run is kept in is a table in logs,
-- by the letter of its algorithm:
--
--   prefix                         of its key
--   open(run)                      reads run.total, the units booked up to now
--                                  (modulo MODULUS), run.last, the slot that none
--                                  comes before, and run.size, 0 if it is empty
--   newest(run, need)              the slot of the newest entry that, with all
--                                  that counts since it, is more than need units
--   after(run, slot)               the age of the first entry with a later slot
--   append(run, slot, cost)        enters
--   has(run, slot, before, cost)   whether those units were entered at that slot
--   split(run, slot, before, cost)  makes those units an entry of their own, if it
--                                  must; has(run, slot, before, cost) holds
--   last(run)                      the last entry as pack() names it, or nil; of
--                                  one that should be two the second, see lastPart
--   cut(run)                       removes what last(run) has named
--   trim(run, now, window, largest)  removes some of what can matter no more, and
--                                  returns the last slot of that
--
-- An entry's age is in units: all that was booked since it, itself included.
-- Units that were handed back stay in the log and are also in the account's set
-- of free ones, as holes. While its slot has not come a hole counts, and the next
-- booker takes it; once its slot has passed unused it counts for nothing.
-- slidinglog.go is the same in Go.

local logs = {}

local MODULUS = 4503599627370496
-- More holes than this are not kept: the oldest counts as spent.
local HOLES = 512
-- More runs than this are not begun: who would need another waits for the first
-- run that ends.
local RUNS = 8
-- An overtaker that has found no room in so many places goes behind all others,
-- and so does one that has looked at so many parts of what lies ahead of it.
local PLACES = 32
local LOOKS = 512

local function pack(before, cost)
  return struct.pack('>I7I5', before, cost)
end

local function unpackEntry(text, at)
  return struct.unpack('>I7I5', text, at)
end

-- openRun reads a run.
local function openRun(account, kind, scopes, number, now)
  local run = {kind = logs[kind], letter = kind, account = account, scopes = scopes, number = number, now = now}
  run.holes, run.unspent = {}, 0
  run.key = base .. run.kind.prefix .. account
  if scopes ~= '' or number > 0 then
    run.key = run.key .. ':' .. scopes .. '/' .. number
  end
  -- A log does not begin at 0: after a loss its entries would bear the names of
  -- those that were lost, and be handed back in their stead.
  run.total, run.last = now % MODULUS, 0
  run.kind.open(run)
  return run
end

-- lastPart returns before and cost of what is handed back of the end of a run's
-- last entry, or of all of it: for storages that split nothing.
local function lastPart(run, entry)
  local free = base .. ':free:' .. run.account
  for _, name in ipairs(call('ZRANGEBYSCORE', free, text(entry.slot), text(entry.slot))) do
    if #name == 15 and string.find(name, '^%z' .. run.letter .. '0') then
      local before, cost = unpackEntry(name, 4)
      if before >= entry.before and before + cost == entry.before + entry.cost then
        return before, cost
      end
    end
  end
  return entry.before, entry.cost
end

-- unspentHole notes a hole whose slot has passed. The newest come first, but those
-- of one slot in the order of their lanes' names.
local function unspentHole(run, before, cost)
  local holes, age = run.holes, (run.total - before) % MODULUS
  local at = #holes + 1
  while at > 1 and holes[at - 1].age > age do
    at = at - 1
  end
  table.insert(holes, at, {age = age, cost = cost})
  for i = at, #holes do
    holes[i].sum = holes[i].cost + (i > 1 and holes[i - 1].sum or 0)
  end
  run.unspent = run.unspent + cost
end

-- spent returns how many of the units of that age count.
local function spent(run, age)
  local low, high, passed = 1, #run.holes, 0
  while low <= high do
    local middle = math.floor((low + high) / 2)
    local hole = run.holes[middle]
    if hole.age > age then
      high = middle - 1
    else
      passed = hole.sum
      low = middle + 1
    end
  end
  return age - passed
end

-- since returns the units of some runs that count with slots after the given one.
local function since(runs, slot)
  local units = 0
  slot = math.max(slot, 0)
  for _, run in ipairs(runs) do
    local age = run.last > slot and run.size > 0 and run.kind.after(run, slot)
    if age then
      units = units + spent(run, age)
    end
  end
  return units
end

-- leaves returns the slot at which, of all that counts after the given one, so
-- many units have been booked.
local function leaves(runs, slot, units, last)
  if #runs == 1 then
    return runs[1].kind.newest(runs[1], since(runs, slot) - units)
  end
  local low, high, most = slot, last, since(runs, slot) - units
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if since(runs, middle) <= most then
      high = middle
    else
      low = middle
    end
  end
  return high
end

-- full returns the end of a window that ends in [low, high] and holds more than
-- room, and how much; the latest that there is. A part of [low, high] in which all
-- windows together hold no more need not be looked at closer: of entries a window
-- apart, as those are that waited for each other, most parts hold few.
local function full(runs, low, high, window, room, looks)
  looks.left = looks.left - 1
  local units = since(runs, low - window) - since(runs, high)
  if units <= room then
    return nil
  elseif low == high or looks.left <= 0 then
    return low, units
  end
  local middle = math.floor((low + high) / 2)
  local at, most = full(runs, middle + 1, high, window, room, looks)
  if at then
    return at, most
  end
  return full(runs, low, middle, window, room, looks)
end

local function lastOfRuns(runs)
  local last = 0
  for _, run in ipairs(runs) do
    last = math.max(last, run.last)
  end
  return last
end

-- slotBetween returns the first slot in [from, before) at which no window holds more
-- than room, if there is one and it need not be looked for any longer.
local function slotBetween(runs, from, before, room, window, last)
  local slot, place, looks = from, 0, {left = LOOKS}
  while slot < before and place < PLACES and looks.left > 0 do
    -- The windows with the slot in them end before one has passed.
    local ends = math.max(slot, math.min(slot + window - 1, last))
    local at, units = full(runs, slot, ends, window, room, looks)
    if not at then
      return slot
    end
    slot, place = math.max(slot + 1, leaves(runs, at - window, units - room, last) + window), place + 1
  end
  return nil
end

-- earliestInLog returns the first slot not before from at which no window holds
-- more than max with the new booking in it. From may be long ago, as of one whose
-- lane was idle: what has passed takes nothing from the search of what is ahead.
local function earliestInLog(runs, from, cost, max, window)
  local room, last = max - cost, lastOfRuns(runs)
  if last == 0 then
    return from
  end
  local now = runs[1].now
  if from < last and from < now then
    local slot = slotBetween(runs, from, now, room, window, last)
    if slot then
      return slot
    end
    from = now
  end
  if #runs == 1 and from >= last then
    -- The window that is to hold room units and the booking begins after this.
    local slot = runs[1].kind.newest(runs[1], room)
    return slot and math.max(from, slot + window) or from
  end
  local slot = slotBetween(runs, from, last, room, window, last)
  if slot then
    return slot
  end
  slot = math.max(from, last)
  local units = since(runs, slot - window)
  if units > room then
    slot = math.max(slot, leaves(runs, slot - window, units - room, last) + window)
  end
  return slot
end

-- logUsage returns the units used of a limit, and when the next is free.
local function logUsage(runs, now, max, window)
  local units = since(runs, now - window)
  if units == 0 then
    return 0, 0
  end
  return units, leaves(runs, now - window, math.max(1, units - max + 1), lastOfRuns(runs)) + window
end

-- endOfFirst returns when the first run of those scopes ends that another booking
-- can be entered behind, where no more may be begun.
local function endOfFirst(runs, scopes)
  local count, first = 0, math.huge
  for _, run in ipairs(runs) do
    if run.scopes == scopes then
      count, first = count + 1, math.min(first, run.last)
    end
  end
  return count < RUNS and 0 or first
end

-- enterRun enters units in the run that ends last before them.
local function enterRun(charge, scopes, slot, cost)
  local best, count
  count = 0
  for _, run in ipairs(charge.runs) do
    if run.scopes == scopes then
      count = count + 1
      if run.last <= slot and (not best or run.last > best.last) then
        best = run
      end
    end
  end
  if not best then
    best = openRun(charge.id, charge.kind, scopes, count, charge.now)
    charge.runs[#charge.runs + 1] = best
  end
  local before = best.total
  best.kind.append(best, slot, cost)
  best.fresh = best.fresh or best.size == 0
  best.size, best.touched = best.size + 1, true
  best.last = slot
  if before + cost >= MODULUS then
    -- The entries begin again from 0: only a later slot keeps the order.
    best.last = slot + 1
  end
  best.total = (before + cost) % MODULUS
  -- The holes' ages are counted from the end of the log.
  for _, hole in ipairs(best.holes) do
    hole.age = hole.age + cost
  end
  return best.letter .. best.number .. pack(before, cost)
end
