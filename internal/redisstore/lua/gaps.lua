-- gaps.lua: the time of a bucket of GCRA, and what of it is free before its tail: see gcra.lua.

-- So much is exact: 2^53.
local EXACT = 9007199254740992

-- emission is how long units take to run out, microseconds and parts: exact, or
-- rounded up.
local function emission(m, units)
  local exact = m.window * units
  if math.abs(exact) > EXACT then
    return math.ceil(m.window * (units / m.max)) + 1, 0
  end
  local whole = math.floor(exact / m.max)
  return whole, exact - whole * m.max
end

local function plus(m, at, part, units)
  local whole, rest = emission(m, units)
  at, part = at + whole, part + rest
  if part >= m.max then
    return at + 1, part - m.max
  end
  return at, part
end

local function isAfter(at, part, otherAt, otherPart)
  return at > otherAt or at == otherAt and part > otherPart
end

-- minus returns an instant less a time, or a time less another.
local function minus(m, at, part, less, lessPart)
  at, part = at - less, part - lessPart
  if part < 0 then
    return at - 1, part + m.max
  end
  return at, part
end

-- more returns an instant and a time.
local function more(m, at, part, length, lengthPart)
  at, part = at + length, part + lengthPart
  if part >= m.max then
    return at + 1, part - m.max
  end
  return at, part
end

-- behind returns the first instant that lies those units behind the TAT.
local function behind(m, at, part, units)
  local exact = m.window * units
  if math.abs(exact) > EXACT then
    return at + math.ceil(m.window * (units / m.max)) + 1
  end
  return at + math.ceil((exact + part) / m.max)
end

-- readBucket returns the TAT, whose part may be of another Max.
local function readBucket(m)
  return get(m, 'at') or 0, math.min(get(m, 'part') or 0, m.max)
end

local function writeBucket(m, at, part)
  put(m, 'at', at)
  put(m, 'part', part)
end

-- gaps is what a script does with the free time before the tail of a bucket.
local gaps = {}

do
  -- A booking looks at so many gaps, a count at so many: those behind are as if taken. So
  -- many that have passed are forgotten at once.
  local GAPS, READ, DROPPED = 1024, 8000, 1024
  -- Of so many gaps a booking may be made where none alone is long enough, whose slot is tried so often.
  local PIECES, TRIES = 8, 4

  -- keyOf is the key of the free time before the tail.
  function gaps.keyOf(m)
    return base .. ':gaps:' .. m.account.id .. ':' .. m.name
  end

  local GAP = '>I7I5I7I5'

  -- read returns from when to when time is free, whatever Max its parts were of.
  function gaps.read(m, member)
    local from, fromPart, to, toPart = struct.unpack(GAP, member)
    return from, math.min(fromPart, m.max), to, math.min(toPart, m.max)
  end

  -- free notes that time is free, of which only that behind now matters.
  function gaps.free(m, from, fromPart, to, toPart)
    if not isAfter(to, toPart, m.account.now, 0) or not isAfter(to, toPart, from, fromPart) then
      return
    end
    call('ZADD', gaps.keyOf(m), text(to), struct.pack(GAP, from, fromPart, to, toPart))
    if not get(m, 'gaps') then
      put(m, 'gaps', 1)
      m.account.fresh = true
    end
  end

  -- place returns the first slot not before from of a booking whose time begins no earlier
  -- than some instant, and when that begins and ends.
  local function place(m, at, part, from, cost, size)
    local slot = math.max(from, behind(m, at, part, cost - size) + m.margin)
    if not isAfter(at, part, slot, 0) then
      at, part = slot, 0
    end
    return slot, at, part, plus(m, at, part, cost)
  end

  -- find returns the first gap that has time for a booking, or nil if the tail has it; the
  -- slot, and when the time begins and ends. What ends before from has none.
  function gaps.find(m, from, cost, size)
    local first, looked, chunk = math.max(from, m.account.now), 0, 8
    while get(m, 'gaps') and looked < GAPS do
      local some = call('ZRANGEBYSCORE', gaps.keyOf(m), text(first), '+inf', 'LIMIT', looked, chunk)
      for _, member in ipairs(some) do
        local gap = {member = member}
        gap.from, gap.fromPart, gap.to, gap.toPart = gaps.read(m, member)
        if gap.from < m.account.now then
          gap.from, gap.fromPart = m.account.now, 0
        end
        local slot, at, part, ends, endsPart = place(m, gap.from, gap.fromPart, from, cost, size)
        if not isAfter(ends, endsPart, gap.to, gap.toPart) then
          return gap, slot, at, part, ends, endsPart
        end
      end
      work = work + #some / QUICK
      if #some < chunk then
        break
      end
      looked = looked + chunk
      chunk = math.min(2 * chunk, GAPS - looked)
    end
    local at, part = readBucket(m)
    return nil, place(m, at, part, from, cost, size)
  end

  -- portion returns what of a gap, from an instant on, is taken by so much time, and how much is left of that.
  local function portion(m, member, first, left, leftPart)
    local gap = {member = member}
    gap.from, gap.fromPart, gap.to, gap.toPart = gaps.read(m, member)
    gap.at, gap.part, gap.ends, gap.endsPart = gap.from, gap.fromPart, gap.to, gap.toPart
    if gap.at < first then
      gap.at, gap.part = first, 0
    end
    local length, lengthPart = minus(m, gap.to, gap.toPart, gap.at, gap.part)
    if isAfter(length, lengthPart, left, leftPart) then
      gap.ends, gap.endsPart = more(m, gap.at, gap.part, left, leftPart)
      return gap, 0, 0
    end
    return gap, minus(m, left, leftPart, length, lengthPart)
  end

  -- pieces returns the slot of a booking that takes several gaps, from the slot on, if it is before another one, and
  -- what it takes of each; nil: it is not, or there are too few. What calls have not used comes back in pieces that are
  -- shorter than the next call.
  function gaps.pieces(m, from, cost, size, before)
    local slot = math.max(from, m.account.now)
    if not get(m, 'gaps') or slot >= before then
      return nil
    end
    for _ = 1, TRIES do
      local left, leftPart = emission(m, cost)
      local found = {}
      local some = call('ZRANGEBYSCORE', gaps.keyOf(m), '(' .. text(slot), '+inf', 'LIMIT', 0, PIECES)
      work = work + #some / QUICK
      for _, member in ipairs(some) do
        found[#found + 1], left, leftPart = portion(m, member, slot, left, leftPart)
        if not isAfter(left, leftPart, 0, 0) then
          break
        end
      end
      if isAfter(left, leftPart, 0, 0) then
        return nil
      end
      local last = found[#found]
      local later = math.max(slot, behind(m, last.ends, last.endsPart, -size) + m.margin)
      if later >= before then
        return nil
      elseif later == slot then
        return slot, found
      end
      slot = later
    end
    return nil
  end

  -- takeOf takes what a booking takes of a gap.
  function gaps.takeOf(m, gap)
    call('ZREM', gaps.keyOf(m), gap.member)
    gaps.free(m, gap.from, gap.fromPart, gap.at, gap.part)
    gaps.free(m, gap.ends, gap.endsPart, gap.to, gap.toPart)
  end

  -- busy returns how much time is taken behind an instant, in parts, no less than that much
  -- if it is more; and the gaps at which it has looked.
  function gaps.busy(m, instant, enough)
    local at, part = readBucket(m)
    local parts, from, fromPart, looked = 0, instant, 0, {}
    local first, chunk = math.max(instant, m.account.now), 8
    while get(m, 'gaps') and parts < enough and #looked < READ do
      local some = call('ZRANGEBYSCORE', gaps.keyOf(m), text(first), '+inf', 'LIMIT', #looked, chunk)
      for _, member in ipairs(some) do
        local begins, beginsPart, ends, endsPart = gaps.read(m, member)
        if begins < first then
          begins, beginsPart = first, 0
        end
        parts = parts + (begins - from) * m.max + beginsPart - fromPart
        from, fromPart = ends, endsPart
        looked[#looked + 1] = member
      end
      work = work + #some / QUICK
      if #some < chunk then
        break
      end
      chunk = 2 * chunk
    end
    if isAfter(at, part, from, fromPart) then
      parts = parts + (at - from) * m.max + part - fromPart
    end
    return parts, looked
  end

  -- take takes so much of the first free time from an instant on, and returns what is left to be taken.
  function gaps.take(m, first, left, leftPart)
    first = math.max(first, m.account.now)
    local looked = 0
    while get(m, 'gaps') and looked < GAPS and isAfter(left, leftPart, 0, 0) do
      local member = call('ZRANGEBYSCORE', gaps.keyOf(m), '(' .. text(first), '+inf', 'LIMIT', 0, 1)[1]
      if not member then
        break
      end
      local gap
      gap, left, leftPart = portion(m, member, first, left, leftPart)
      gaps.takeOf(m, gap)
      looked = looked + 1
    end
    work = work + looked / QUICK
    return left, leftPart
  end

  function gaps.dropAll(m)
    if get(m, 'gaps') then
      call('UNLINK', gaps.keyOf(m))
      put(m, 'gaps', nil)
    end
  end

  -- drop forgets gaps that have passed, once in a script.
  function gaps.drop(m)
    if get(m, 'gaps') and not m.dropped then
      m.dropped = true
      local key, now = gaps.keyOf(m), text(m.account.now)
      local passed = call('ZCOUNT', key, '-inf', '(' .. now)
      if passed > 0 then
        call('ZREMRANGEBYRANK', key, 0, math.min(passed, DROPPED) - 1)
      end
      for _, member in ipairs(call('ZRANGEBYSCORE', key, now, now)) do
        local _, _, _, part = struct.unpack(GAP, member)
        if part == 0 then
          call('ZREM', key, member)
        end
      end
      if call('EXISTS', key) == 0 then
        put(m, 'gaps', nil)
      end
    end
  end
end
