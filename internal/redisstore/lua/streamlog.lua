-- streamlog.lua: a run of the exact log in a stream.
--
-- An entry's ID is SLOT-BEFORE: its slot, and the units booked before it (modulo
-- 2^52). Its field c is its cost. A stream keeps the differences between IDs, so
-- an entry takes about 19 bytes. There are no ranks: the search for where
-- Max - cost lies is a search over IDs, by interpolation, and by halves where
-- that does not get near.
--
-- IDs must increase, also behind entries that were removed: XSETID cannot undo
-- that after XDEL in later versions of Redis. So an entry that takes a slot which
-- was given up has an ID behind all that ever were, and a second field, s, by how
-- much that is too late. Entries with one number before the hyphen have one slot.

-- Interpolation that has not found it so often is given up.
local GUESSES = 8
-- What can be removed is looked for once in so many units.
local SWEEP = 64

-- streamEntry reads the first of those that XRANGE returned.
local function streamEntry(reply)
  local one = reply[1]
  if not one then
    return nil
  end
  local at, before = string.match(one[1], '^(%d+)-(%d+)$')
  at = tonumber(at)
  return {
    id = one[1], at = at, before = tonumber(before),
    cost = tonumber(one[2][2]), slot = at - tonumber(one[2][4] or 0),
  }
end

local function streamFrom(run, id)
  return streamEntry(call('XRANGE', run.key, id, '+', 'COUNT', 1))
end

local function streamUpTo(run, id)
  return streamEntry(call('XREVRANGE', run.key, id, '-', 'COUNT', 1))
end

-- searchStream returns an entry of the newest ID before the hyphen that has one
-- of at least that weight. weigh(age, slot) never grows from an entry to the
-- next; where the slot is nil it is not known.
local function searchStream(run, least, weigh)
  local function weight(entry)
    return weigh((run.total - entry.before) % MODULUS, entry.slot)
  end
  local function isLast(entry)
    return weigh((run.total - entry.before) % MODULUS - entry.cost) < least
  end
  local low, high = streamFrom(run, '-'), run.tail
  local top, bottom = weight(low), weight(high)
  if top < least then
    return nil
  elseif bottom >= least then
    return high
  elseif isLast(low) then
    return low
  end
  local looks = 0
  while low.at < high.at do
    looks = looks + 1
    local part = looks <= GUESSES and (top - least) / (top - bottom) or 0.5
    local at = math.max(low.at + 1, math.min(high.at, low.at + math.floor((high.at - low.at) * part)))
    local entry = streamFrom(run, text(at))
    if weight(entry) >= least then
      if isLast(entry) then
        return entry
      end
      low, top = entry, weight(entry)
    else
      entry = streamUpTo(run, text(at - 1))
      if weight(entry) >= least then
        return entry
      end
      high, bottom = entry, weight(entry)
    end
  end
  return low
end

-- streamSince returns the entry from which on more than those units count.
local function streamSince(run, need)
  return searchStream(run, need + 1, function(age)
    return spent(run, age)
  end)
end

logs.S = {
  prefix = ':stream:',

  open = function(run)
    run.size = call('XLEN', run.key)
    if run.size > 0 then
      local tail = streamUpTo(run, '+')
      local after = tail.before + tail.cost
      run.tail = tail
      run.total = after % MODULUS
      run.last = after < MODULUS and tail.slot or tail.slot + 1
    end
  end,

  newest = function(run, need)
    local entry = run.size > 0 and streamSince(run, need)
    return entry and entry.slot or nil
  end,

  after = function(run, slot)
    if run.tail.slot <= slot then
      return nil
    end
    local entry = streamFrom(run, text(slot + 1))
    if entry.slot > slot then
      return (run.total - entry.before) % MODULUS
    end
    -- Its ID is too late: the last entry up to the slot lies behind it.
    entry = searchStream(run, -slot, function(_, at)
      return -(at or slot)
    end)
    return (run.total - entry.before) % MODULUS - entry.cost
  end,

  append = function(run, slot, cost)
    local tail, at, reply = run.tail, slot, nil
    if not tail or tail.at ~= slot or tail.slot == slot then
      reply = redis.pcall('XADD', run.key, text(slot) .. '-' .. text(run.total), 'c', text(cost))
    end
    if type(reply) ~= 'string' then
      local info = call('XINFO', 'STREAM', run.key)
      for i = 1, #info, 2 do
        if info[i] == 'last-generated-id' then
          at = tonumber(string.match(info[i + 1], '^%d+')) + 1
        end
      end
      call('XADD', run.key, text(at) .. '-' .. text(run.total), 'c', text(cost), 's', text(at - slot))
    end
    run.tail = {at = at, before = run.total, cost = cost, slot = slot}
  end,

  has = function(run, slot, before, cost)
    local entry = searchStream(run, (run.total - before) % MODULUS, function(age)
      return age
    end)
    entry = entry and streamUpTo(run, text(entry.at) .. '-' .. text(before))
    return entry and entry.slot == slot and entry.before <= before and before + cost <= entry.before + entry.cost
  end,

  split = function() end,

  last = function(run)
    run.tail = streamUpTo(run, '+')
    if not run.tail then
      return nil
    end
    local before, cost = lastPart(run, run.tail)
    run.cut = before
    return pack(before, cost)
  end,

  cut = function(run)
    local tail = run.tail
    call('XDEL', run.key, tail.id)
    if run.cut > tail.before then
      run.total = tail.before
      logs.S.append(run, tail.slot, run.cut - tail.before)
    elseif call('XLEN', run.key) == 0 then
      call('UNLINK', run.key)
    end
  end,

  -- The rule of slidinglog.lua, for as many entries as Redis removes at once with
  -- whole nodes: never more than that, and up to a node fewer.
  trim = function(run, now, window, largest)
    if run.size < SWEEP or math.floor(run.opened / SWEEP) == math.floor(run.total / SWEEP) then
      return nil
    end
    local bound, least = streamSince(run, largest), now - window - DAY
    if bound then
      least = math.max(least, math.min(bound.at, now - window))
    end
    local removed = call('XTRIM', run.key, 'MINID', '~', text(least))
    if removed == 0 then
      return nil
    end
    run.size = run.size - removed
    local first = streamFrom(run, '-')
    return first and first.slot or least
  end,
}
