-- frontfirstuse.lua: what front.lua does where a FixedWindow counts whose windows begin with a call: see
-- firstuse.lua. p1 is the beginning of the last window, p2 its units, p3 those at its beginning.

--> slot
if code == '*' and c <= max then
  local begins, used = p1, p2
  key, s = begins, from
  if used == 0 or from >= begins + window + margin then
    key = from
  elseif from >= begins + window - margin or used + c > max then
    key, s = begins + window + margin, begins + window + margin
  end
  alike = (key == begins and max - used or max) / c
end

--> left
if code == '*' then
  local name = string.format('F/%.0f/0/-/*:%.0f', window, p1)
  call('HSET', hash, name, p2, name .. '<', final, name .. '^', p3)
end

--> count
if code == '*' then
  if key ~= p1 or p2 == 0 then
    p1, p2, p3 = key, 0, 0
  end
  p2 = p2 + alike * cost
  if s == p1 then
    p3 = p3 + alike * cost
  end
end
