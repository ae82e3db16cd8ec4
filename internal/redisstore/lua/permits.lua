-- permits.lua: divides a limit of calls in flight among the workers. internal/memstore/permits.go is the same in
-- memory.
--
--   KEYS[1]:permits        zset    the names of the limits, score = when a worker last asked for permits
--   KEYS[1]:permits:LIMIT  hash    WORKER, 'USED WANTED SHARE KNOWS ENDS'; '', 'MOST LOWERED SINCE TOLD LABEL': the
--                                  limit in force, that after refusals and when it was lowered last, or 0, and when it
--                                  was last told that permits are wanted

-- How long a worker has its share: store.PermitsFor.
local LEASE = 30000000
-- How often it is lowered at most.
local LOWER = 1000000
-- After how long a lowered limit is raised by one: store.RaisePermitsAfter.
local RAISE = 60000000
-- How long who wants more than an even share has one of those that are over.
local TURN = 2000000
-- How often it is told at most that permits are wanted.
local TELL = 100000

-- fairShare returns how many of so many permits a worker is given of those that want some: store.FairShare.
local function fairShare(permits, workers, of, turn)
  local wants, left, many = {}, permits, #workers
  for i, worker in ipairs(workers) do
    wants[i] = worker.wanted
  end
  table.sort(wants)
  for _, n in ipairs(wants) do
    if n > math.floor(left / many) then
      break
    end
    left, many = left - n, many - 1
  end
  local even = many > 0 and math.floor(left / many)
  if not even or of.wanted <= even then
    return of.wanted
  end
  local place = 0
  for _, worker in ipairs(workers) do
    if worker == of then
      break
    end
    place = place + (worker.wanted > even and 1 or 0)
  end
  return even + ((place + turn) % many < left % many and 1 or 0)
end

local function inUse(worker)
  return math.max(worker.used, worker.share, worker.knows)
end

-- readPermits returns what is kept of a limit: what '' has, in the order of their names the workers that have a
-- share, those that have none any more, and how many calls are in flight.
local function readPermits(key, now)
  local of = {label = '', most = 0, lowered = 0, since = 0, told = 0, workers = {}, gone = {}, used = 0}
  local all = call('HGETALL', key)
  for i = 1, #all, 2 do
    if all[i] == '' then
      local most, lowered, since, told, label = string.match(all[i + 1], '^(%d+) (%d+) (%d+) (%d+) (.*)$')
      of.most, of.lowered, of.since, of.told = tonumber(most), tonumber(lowered), tonumber(since), tonumber(told)
      of.label = label
    else
      local used, wanted, share, knows, ends = string.match(all[i + 1], '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
      local worker = {
        name = all[i], used = tonumber(used), wanted = tonumber(wanted),
        share = tonumber(share), knows = tonumber(knows), ends = tonumber(ends)
      }
      if worker.ends <= now then
        of.gone[#of.gone + 1] = worker.name
      else
        of.workers[#of.workers + 1] = worker
        of.used = of.used + worker.used
      end
    end
  end
  table.sort(of.workers, function(a, b) return a.name < b.name end)
  return of
end

-- givePermits gives a worker its share of a limit, and returns that as the reply has it.
local function givePermits(name, asked, now)
  local limit, max, used, wanted, refused = asked.limit, asked.max, asked.used, asked.wanted, asked.refused
  local key = base .. ':permits:' .. limit
  local of = readPermits(key, now)
  local own, before, taken = nil, 0, 0
  for _, worker in ipairs(of.workers) do
    if worker.name == name then
      own, before = worker, inUse(worker)
    else
      taken = taken + inUse(worker)
    end
  end
  if not own then
    own = {name = name, used = 0}
    table.insert(of.workers, own)
    table.sort(of.workers, function(a, b) return a.name < b.name end)
  end
  of.used = of.used - own.used + used
  own.used, own.wanted, own.knows = used, math.max(used, wanted), asked.knows

  local most, turn = max, math.floor(now / TURN)
  if of.since > 0 then
    most = math.min(most, of.lowered + math.floor((now - of.since) / RAISE))
  end
  if refused > 0 and now - of.since >= LOWER then -- as many as were served at the same time may be
    local least = most - math.max(1, math.floor(most * 3 / 10))
    most = math.max(1, least, math.min(most - 1, used + taken - refused))
    of.lowered, of.since = most, now
  end
  own.share = math.max(0, math.min(fairShare(most, of.workers, own, turn), most - taken))

  local short, surplus = false, inUse(own) < before
  for _, worker in ipairs(of.workers) do
    short = short or worker.share < worker.wanted
    if worker ~= own then
      surplus = surplus or worker.share > math.max(worker.used, fairShare(most, of.workers, worker, turn))
    end
  end
  if short and surplus and now - of.told >= TELL then
    of.told = now
    redis.pcall('PUBLISH', base, 'permits ' .. limit)
  end

  if #of.gone > 0 then
    call('HDEL', key, unpack(of.gone))
  end
  if own.wanted == 0 and inUse(own) == 0 then
    call('HDEL', key, name)
  else
    local numbers = {text(used), text(own.wanted), text(own.share), text(own.knows), text(now + LEASE)}
    call('HSET', key, name, table.concat(numbers, ' '))
  end
  if own.wanted > 0 or inUse(own) > 0 or of.since > 0 then
    local index = base .. ':permits'
    call('HSET', key, '', table.concat({text(most), text(of.lowered), text(of.since), text(of.told), asked.label}, ' '))
    call('PEXPIRE', key, text((of.since > 0 and DAY or 2 * LEASE) / 1000))
    call('ZADD', index, text(now), limit)
    call('ZREMRANGEBYSCORE', index, '-inf', text(now - 2 * LEASE))
    call('PEXPIRE', index, text(2 * LEASE / 1000))
  end
  return encode(own.share) .. encode(most) .. encode(of.used) .. encode(short and 1 or 0)
end

-- tellPermits returns what is kept of all limits that are in use, as the reply has it behind their number.
local function tellPermits(now)
  local reply = {}
  for _, limit in ipairs(call('ZRANGEBYSCORE', base .. ':permits', text(now - LEASE), '+inf')) do
    local of = readPermits(base .. ':permits:' .. limit, now)
    local share = 0
    for _, worker in ipairs(of.workers) do
      share = share + worker.share
    end
    reply[#reply + 1] = named(limit) .. named(of.label) .. encode(share) .. encode(of.used) .. encode(of.most)
  end
  return encode(#reply) .. table.concat(reply)
end
