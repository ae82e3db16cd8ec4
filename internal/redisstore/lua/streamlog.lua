-- streamlog.lua: a log in a stream.
--
-- An entry's ID is SLOT-NUMBER: its slot, and the number of its first unit. Its field c
-- is how many they are. A stream keeps the differences between IDs, so an entry takes
-- about 19 bytes. IDs must increase: what is recorded between others is in a pile
-- beside the stream, and what is taken out of it in another, which is subtracted.

do
  -- The last entry of a stream that has none.
  local NONE = {slot = -math.huge, number = 0, units = 0}

  local function entryOf(reply)
    local one = reply[1]
    if not one then
      return nil
    end
    local slot, number = string.match(one[1], '^(%d+)-(%d+)$')
    return {slot = tonumber(slot), number = tonumber(number), units = tonumber(one[2][2])}
  end

  -- since returns the units with slots behind an instant.
  local function since(stream, slot)
    local tail = stream.tail
    if tail.slot <= slot then
      return 0
    end
    local units = stream.known[slot]
    if not units then
      local entry = entryOf(call('XRANGE', stream.key, text(math.max(0, slot + 1)), '+', 'COUNT', 1))
      units = (tail.number + tail.units - entry.number) % MODULUS
      weight = weight + 3
      stream.known[slot], stream.next[slot] = units, entry.slot
    end
    return units
  end

  kinds.S = {
    open = function(key)
      local tail = entryOf(call('XREVRANGE', key, '+', '-', 'COUNT', 1)) or NONE
      return {key = key, units = 1, tail = tail, known = {}, next = {}}
    end,

    countIn = function(stream, low, high)
      return since(stream, low) - (high and since(stream, high) or 0)
    end,

    -- each calls a function with the slot and the units of so many entries behind low up to
    -- high at most. It returns how many there were, and the last one's slot.
    each = function(stream, low, high, most, visit)
      local entries, slot = call('XRANGE', stream.key, text(math.max(0, low + 1)), text(high), 'COUNT', most), nil
      for _, one in ipairs(entries) do
        slot = tonumber(string.match(one[1], '^%d+'))
        visit(slot, tonumber(one[2][2]))
      end
      return #entries, slot
    end,

    -- append records units at the end, and returns the number of the first: that of the
    -- account's next unit if it is the first of all. nil if they belong before the end.
    append = function(stream, slot, number, units)
      local tail = stream.tail
      number = tail ~= NONE and (tail.number + tail.units) % MODULUS or number
      if slot < tail.slot or slot == tail.slot and number <= tail.number then
        return nil
      end
      local reply = redis.pcall('XADD', stream.key, text(slot) .. '-' .. text(number), 'c', text(units))
      if type(reply) ~= 'string' then
        return nil
      end
      stream.fresh = tail == NONE
      stream.tail, stream.known = {slot = slot, number = number, units = units}, {}
      return number
    end,

    has = function(stream, slot, number, units)
      local at = text(slot)
      local entry = entryOf(call('XREVRANGE', stream.key, at .. '-' .. text(number), at .. '-0', 'COUNT', 1))
      return entry and number + units <= entry.number + entry.units
    end,

    trim = function(stream, before)
      call('XTRIM', stream.key, 'MINID', '~', text(before))
      stream.known = {}
    end,
  }
end
