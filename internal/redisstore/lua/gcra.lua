-- gcra.lua: a bucket that loses Max units in a Window, and holds Burst.
--
-- The theoretical arrival time (TAT) of GCRA is when the bucket would be empty:
--
--   at      it, in whole microseconds
--   part    the rest, of which Max are a microsecond: rounded at every booking, a
--           burst of three at three a second would not leave at once
--   ahead   where there are several lanes, the bookings whose slot has not come,
--           12 bytes each, in the order of slots: see drops()
--
-- With a Burst of 1 this is the plain leaky bucket, with a Burst of n the token
-- bucket of n.
--
-- The promise: at most Max + Burst - 1 units in any window, with a Burst of 1 at
-- most Max. What leaves within d is at most what the bucket holds and what it loses
-- meanwhile, Burst + Max * d / Window units, and d is less than Window. Burst units at
-- once and then one every Window / Max are as many.
--
-- The margin: the provider admits a call if its TAT then is at most Burst - cost units
-- after the call's arrival. So it admits all, in whatever order they arrive, if from
-- any call to any later one, both included, at most Burst units leave and what runs
-- out between their arrivals. The one may arrive a margin late and the other at once:
-- so a slot comes no earlier than a margin after the TAT, less Burst - cost units. The
-- last units of a burst wait for that, up to a margin. Where Burst - 1 units run out
-- in less than the margin, the spacing is longer by the difference.
--
-- Units that were handed back and have passed unused stay in the bucket. That delays
-- others at most by the time in which they run out, their share of Max of a window.

-- More bookings ahead than this are not kept: the first fall into the bucket early,
-- and nobody overtakes them.
local DROPS = 512
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

local function minus(m, at, part, units)
  local whole, rest = emission(m, units)
  at, part = at - whole, part - rest
  if part < 0 then
    return at - 1, part + m.max
  end
  return at, part
end

local function isAfter(at, part, otherAt, otherPart)
  return at > otherAt or at == otherAt and part > otherPart
end

-- fill returns a bucket with what falls into it. A bucket that is not yet empty
-- takes it as if it fell later: in whatever order bookings are entered, the TAT is
-- never too early.
local function fill(m, at, part, slot, cost)
  if not isAfter(at, part, slot, 0) then
    at, part = slot, 0
  end
  return plus(m, at, part, cost)
end

-- behind returns the first instant that lies those units behind the TAT.
local function behind(m, at, part, units)
  local exact = m.window * units
  if math.abs(exact) > EXACT then
    return at + math.ceil(m.window * (units / m.max)) + 1
  end
  return at + math.ceil((exact + part) / m.max)
end

-- level is how many units are in the bucket, rounded up.
local function level(m, at, part, now)
  if at < now then
    return 0
  end
  return math.ceil(((at - now) * m.max + part) / m.window)
end

-- readBucket returns the TAT, whose part may be of another Max.
local function readBucket(m)
  return get(m, 'at') or 0, math.min(get(m, 'part') or 0, m.max)
end

local function keepBucket(m, at, part)
  put(m, 'at', at)
  put(m, 'part', part)
end

-- drops returns the bookings ahead. Where all are of one lane they leave in the
-- order in which they are booked, and there are none.
local function drops(m)
  local all = m.charge.drops or {}
  m.charge.drops = all
  if not all[m.name] then
    local packed, ahead = m.charge.fields[m.name .. 'ahead'] or '', {}
    for i = 1, #packed, 12 do
      local slot, cost = unpackEntry(packed, i)
      ahead[#ahead + 1] = {slot = slot, cost = cost}
    end
    all[m.name] = ahead
  end
  return all[m.name]
end

local function keepDrops(m, ahead)
  local packed = {}
  for i, drop in ipairs(ahead) do
    packed[i] = pack(drop.slot, drop.cost)
  end
  local name = m.name .. 'ahead'
  m.charge.drops[m.name] = ahead
  m.charge.fields[name] = #packed > 0 and table.concat(packed) or nil
  m.charge.dirty[name] = true
end

-- passed returns the bucket with the bookings that have fallen into it by now, and
-- how many those are.
local function passed(m, now)
  local ahead, count = drops(m), 0
  local at, part = readBucket(m)
  while ahead[count + 1] and ahead[count + 1].slot <= now do
    count = count + 1
    at, part = fill(m, at, part, ahead[count].slot, ahead[count].cost)
  end
  return at, part, count
end

local function pass(m, now)
  local at, part, count = passed(m, now)
  if count > 0 then
    keepBucket(m, at, part)
    keepDrops(m, {unpack(drops(m), count + 1)})
  end
end

-- lanesAhead returns how many lanes have booked, and the last slot of all.
local function lanesAhead(charge)
  local lanes, last = 0, 0
  for name, slot in pairs(charge.fields) do
    if string.sub(name, 1, 5) == 'last:' and tonumber(slot) > 0 then
      lanes, last = lanes + 1, math.max(last, tonumber(slot))
    end
  end
  return lanes, last
end

-- bounds returns for each booking ahead the latest TAT that it may find, for itself
-- and all behind it.
local function bounds(m)
  local ahead, all = drops(m), {}
  for i = #ahead, 1, -1 do
    local drop, next = ahead[i], all[i + 1]
    local at, part = minus(m, drop.slot - m.margin, 0, drop.cost - m.extra)
    if next then
      local nextAt, nextPart = minus(m, next.at, next.part, drop.cost)
      if isAfter(at, part, nextAt, nextPart) then
        at, part = nextAt, nextPart
      end
    end
    all[i] = {at = at, part = part}
  end
  return all
end

-- roomAt returns how many units, of bookings of one cost, there is room for at a slot
-- behind all that is booked, in a bucket of that size. nil if instants would have to be
-- rounded, or if others may come in between.
local function roomAt(m, at, part, slot, cost, size)
  if not isAfter(at, part, slot, 0) then
    at, part = slot, 0
  end
  local room = math.floor(((slot - m.margin - at) * m.max - part) / m.window + size)
  if m.window * math.max(m.max, room) > EXACT or lanesAhead(m.charge) > 1 then
    return nil
  end
  if behind(m, at, part, room - size) + m.margin > slot then
    room = room - 1
  end
  return math.max(cost, room)
end

counters.G = {
  -- Who keeps a share back finds the bucket smaller by that share, by a part of a
  -- unit even: with a Burst of 1 it leaves gaps between its units and those before.
  earliest = function(m, from, cost, max)
    local size = m.extra
    if max < m.max then
      size = size * max / m.max
    end
    local all = bounds(m)
    local at, part = readBucket(m)
    for i, drop in ipairs(drops(m)) do
      -- What no longer fits before a booking fits even less later in that gap.
      local slot = math.max(from, behind(m, at, part, cost - size) + m.margin)
      if slot <= drop.slot then
        local filled, rest = fill(m, at, part, slot, cost)
        if not isAfter(filled, rest, all[i].at, all[i].part) then
          return slot
        end
      end
      at, part = fill(m, at, part, drop.slot, drop.cost)
      from = math.max(from, drop.slot)
    end
    local slot = math.max(from, behind(m, at, part, cost - size) + m.margin)
    return slot, not all[1] and roomAt(m, at, part, slot, cost, size) or nil
  end,

  commit = function(m, slot, cost)
    pass(m, m.charge.now)
    if lanesAhead(m.charge) < 2 or slot <= m.charge.now then
      local at, part = readBucket(m)
      keepBucket(m, fill(m, at, part, slot, cost))
      return
    end
    local ahead = drops(m)
    local i = #ahead + 1
    while i > 1 and ahead[i - 1].slot > slot do
      i = i - 1
    end
    table.insert(ahead, i, {slot = slot, cost = cost})
    keepDrops(m, ahead)
    if #ahead > DROPS then
      pass(m, ahead[1].slot)
    end
  end,

  -- Whatever was spent, the provider's bucket is at most full, and at most full
  -- again when the last that is booked has fallen into it.
  enter = function(m, slot, cost)
    pass(m, m.charge.now)
    local at, part = readBucket(m)
    local _, last = lanesAhead(m.charge)
    local full, rest = plus(m, math.max(slot, last), 0, m.extra)
    if isAfter(at, part, full, rest) then
      return
    end
    at, part = fill(m, at, part, slot, math.min(cost, m.extra))
    if isAfter(at, part, full, rest) then
      at, part = full, rest
    end
    keepBucket(m, at, part)
  end,

  -- Used is what is in the bucket, and what is yet to fall into it.
  usage = function(m, now)
    local at, part, count = passed(m, now)
    local ahead = {unpack(drops(m), count + 1)}
    local waiting = 0
    for _, drop in ipairs(ahead) do
      waiting = waiting + drop.cost
    end
    local used = level(m, at, part, now) + waiting
    if used == 0 then
      return 0, 0
    end
    local target = math.min(used, m.extra) - 1
    for _, drop in ipairs(ahead) do
      if waiting <= target then
        local free = behind(m, at, part, waiting - target)
        if free <= drop.slot then
          return used, free
        end
      end
      at, part = fill(m, at, part, drop.slot, drop.cost)
      waiting = waiting - drop.cost
    end
    return used, behind(m, at, part, -target)
  end,

  -- All that a bucket remembers. What else has left in the window matters no more,
  -- and enter would not count it.
  left = function(m, slot)
    local at, part = passed(m, slot)
    return math.min(level(m, at, part, slot), m.extra)
  end,

  -- An empty bucket is kept for a window more, for a clock that steps back, and for
  -- as long as bookings ahead are to fall into it.
  trim = function(m, now)
    local at = get(m, 'at')
    if at and at < now - m.window - m.margin and not m.charge.fields[m.name .. 'ahead'] then
      put(m, 'at', nil)
      put(m, 'part', nil)
    end
  end,
}
