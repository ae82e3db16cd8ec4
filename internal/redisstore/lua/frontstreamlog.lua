-- frontstreamlog.lua: what front.lua does where a StreamLog counts: see streamlog.lua. p1 is the room, p2
-- the number of its next unit, p3 the slot of its last entry, p4 is 1 if nothing is beside the stream.

--> log
if code == 'S' then
  log, trims = base .. ':stream:' .. accountID, math.floor((total % 64 + units) / 64)
  leaves = from < p3 or p2 + units > 4503599627370000 or trims > 0 and p4 ~= 1 or
    total + units + (wanted - turn) * least > p1 and (p4 ~= 1 or max == 0)
end

--> slot
if code == 'S' then
  if total + n * cost + c <= p1 then
    s, alike = from, (p1 - total) / cost - n
  else
    local entry = call('XRANGE', log, string.format('%d', from - span + 1), '+', 'COUNT', 1)[1]
    if entry then
      there = true
      local next, slot, unit = p2 + n * cost, string.match(entry[1], '^(%d+)-(%d+)$')
      if next - unit + c <= max then
        s, p1 = from, total + n * cost + max - next + unit
      elseif next + c - max <= unit + entry[2][2] then
        s = slot + span
      end
    end
  end
end

--> check
if code == 'S' then
  leaves = not there and call('EXISTS', log) == 0
end

--> write
if code == 'S' then
  for g = 1, n > 0 and #groups or 0, 3 do
    for _ = 1, groups[g + 1] do
      call('XADD', log, string.format('%d-%d', groups[g], p2), 'c', cost)
      p2 = p2 + cost
    end
    p3 = from
  end
  for _ = 1, trims do
    call('XTRIM', log, 'MINID', '~', now - span - math.min(span, 60000000))
  end
end

--> entry
if code == 'S' then
  one = struct.pack('>c0c1I2I8I7I2I2I2c0c2I7I5B', one, 'B', alike, slot, unit, #accountID, told, 15, charged,
    '\0S', p2 - n * cost + unit - total, cost, 0)
end
