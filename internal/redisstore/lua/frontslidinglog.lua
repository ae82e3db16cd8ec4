-- frontslidinglog.lua: what front.lua does where a SlidingLog counts: see log.lua. Without other requests'
-- scopes it is one set of units, cut into parts whose sizes are powers of two. p1 is the room, p2 the mask
-- of the sets, p3 the unit from which on the set of single units has them all in order.

--> log
if code == 'L' then
  log, trims = base .. ':log:' .. accountID, math.floor((total % 64 + units) / 64)
end

--> slot
if code == 'L' then
  local room, mask, ordered = p1, p2, p3
  if total + n * cost + c <= room then
    s, alike = from, (room - total) / cost - n
  else
    -- The last unit waits for the one that is Max before it, of each limit.
    local stands, one, apart = 0, max, span
    s, alike = from, math.huge
    repeat
      if max == 0 then
        local tolerance
        _, stands, one, apart, tolerance = string.find(inForce, '(%d+) (%d+) (%d+) L', stands + 1)
        apart = apart + tolerance
      end
      local unit, k, size, oldest = total + n * cost + c - 1 - one, -1, 0.5, nil
      if mask == 1 and unit < total and (wanted > 1 or unit < ordered) then
        -- It is as many from the end. Those behind it are the next ones'.
        ranks = ranks or {}
        local entries = ranks[one]
        if not entries then
          local stop = math.min(total - 1, unit + (wanted - i) * cost) - total
          entries = call('ZRANGE', log, unit - total, stop, 'WITHSCORES')
          entries.unit, ranks[one] = #entries == 2 * (stop - unit + total + 1) and unit or total, entries
        end
        size, oldest = 1, entries[2 * (unit - entries.unit) + 2]
      end
      while unit >= ordered and unit < total and not oldest and 2 * size <= mask do
        k, size = k + 1, 2 * size
        if mask % (2 * size) >= size then
          oldest = call('ZSCORE', k == 0 and log or log .. ':' .. k, struct.pack('>I7', unit - unit % size))
        end
      end
      if not oldest then
        s = nil
        break
      end
      there, s = true, math.max(s, oldest + apart)
      alike = math.min(alike, (size - 1 - unit % size) / c + 1)
    until max > 0 or not string.find(inForce, ' L', stands + 1, true)
  end
end

--> check
-- A set that is new, or gone, is for the rest.
if code == 'L' then
  if n > 0 and (n * cost > 1 or p2 % 2 == 0) then
    local unit, keys = total, {}
    parts, there = {}, true
    for g = 1, #groups, 3 do
      local rest = groups[g + 1] * cost
      while rest > 0 do
        local k, size = 0, 1
        while 2 * size <= rest and unit % (2 * size) == 0 do
          k, size = k + 1, 2 * size
        end
        local key = k == 0 and log or log .. ':' .. k
        local add = parts[key]
        if not add then
          add, there = {}, there and p2 % (2 * size) >= size
          parts[key], keys[#keys + 1] = add, key
        end
        local behind = #add
        add[behind + 1], add[behind + 2] = groups[g], struct.pack('>I7', unit)
        unit, rest = unit + size, rest - size
      end
    end
    leaves = not there or call('EXISTS', unpack(keys)) ~= #keys
  else
    leaves = not there and (p2 % 2 == 0 or call('EXISTS', log) == 0)
  end
end

--> write
if code == 'L' then
  if parts then
    for key, add in pairs(parts) do
      call('ZADD', key, unpack(add))
    end
  elseif n > 0 then
    call('ZADD', log, string.format('%d', from), struct.pack('>I7', total))
  end
  for _ = 1, trims do
    local old = call('ZRANGE', log, 127, 127, 'WITHSCORES')[2]
    if old and tonumber(old) < now - span - math.min(span, 60000000) then
      call('ZREMRANGEBYRANK', log, 0, 127)
    end
  end
end

--> entry
if code == 'L' then
  one = struct.pack('>c0c1I2I8I7I2I2I2c0', one, 'B', alike, slot, unit, #accountID, told, 0, charged)
end
