-- pile.lua: the sorted sets of one log, which log.lua describes.

-- Numbers of units begin again from 0 behind this one.
local MODULUS = 4503599627370496

local function nameOf(number)
  return struct.pack('>I7', number)
end

-- openPile returns a pile, of whose sets the mask has a bit each. A member counts for as
-- many units as it has, or for that many less if sign is -1.
local function openPile(key, mask, sign)
  local pile = {key = key, mask = mask, sign = sign, sets = {}}
  local k, size = 0, 1
  while size <= mask do
    if mask % (2 * size) >= size then
      pile.sets[#pile.sets + 1] = {key = k == 0 and key or key .. ':' .. k, k = k, units = sign * size, size = size}
    end
    k, size = k + 1, 2 * size
  end
  return pile
end

-- eachPart calls a function with the parts of some units: K, the first number, and 2^K.
local function eachPart(first, units, visit)
  while units > 0 do
    local k, size = 0, 1
    while 2 * size <= units and first % (2 * size) == 0 do
      k, size = k + 1, 2 * size
    end
    visit(k, first, size)
    first, units = first + size, units - size
  end
end

-- addTo puts units into a pile.
local function addTo(pile, slot, first, units)
  local members, at = {}, text(slot)
  eachPart(first, units, function(k, number)
    local of = members[k] or {}
    of[#of + 1], of[#of + 2] = at, nameOf(number)
    members[k] = of
  end)
  for k, of in pairs(members) do
    local key, size = k == 0 and pile.key or pile.key .. ':' .. k, 2 ^ k
    local new = pile.mask % (2 * size) < size
    if new and call('ZCARD', key) > 0 then
      call('UNLINK', key) -- left by an account that was lost
    end
    call('ZADD', key, unpack(of))
    if new then
      pile.mask = pile.mask + size
      pile.sets[#pile.sets + 1] = {key = key, k = k, units = pile.sign * size, size = size}
      pile.fresh = true
    elseif call('ZCARD', key) == #of / 2 then
      pile.fresh = true -- it was empty, and does not expire
    end
  end
end

-- holderOf returns the set and the first number of the part that holds a part, or nil.
local function holderOf(pile, slot, number, size)
  for _, set in ipairs(pile.sets) do
    if set.size >= size then
      local first = number - number % set.size
      if tonumber(call('ZSCORE', set.key, nameOf(first)) or -1) == slot then
        return set, first
      end
    end
  end
  return nil
end

-- holds reports whether a pile has all of some units at that slot.
local function holds(pile, slot, first, units)
  local all = true
  eachPart(first, units, function(_, number, size)
    all = all and holderOf(pile, slot, number, size) ~= nil
  end)
  return all
end

-- takeFrom takes units out of a pile that holds them.
local function takeFrom(pile, slot, first, units)
  eachPart(first, units, function(_, number, size)
    local set, begins = holderOf(pile, slot, number, size)
    if set then
      addTo(pile, slot, begins, number - begins)
      addTo(pile, slot, number + size, begins + set.size - number - size)
      call('ZREM', set.key, nameOf(begins))
    end
  end)
end

-- trimPile removes some members with slots before an instant, so many of each set.
local function trimPile(pile, before, most)
  for _, set in ipairs(pile.sets) do
    local old = math.min(most, call('ZCOUNT', set.key, '-inf', '(' .. text(before)))
    if old > 0 then
      call('ZREMRANGEBYRANK', set.key, 0, old - 1)
    end
  end
end
