-- frontfixedwindow.lua: what front.lua does where a FixedWindow counts whose windows are aligned: see
-- fixedwindow.lua. p1 is the number of the last window, p2 its units.

--> slot
if code == 'F' and c <= max then
  local number, used = p1, p2
  key = (from - from % window) / window
  local opens = key * window + (margin - margin % 2) / 2
  s = from > opens and from or opens
  if s >= (key + 1) * window - margin or (key == number and used + c > max) then
    key, s = key + 1, opens + window
  end
  alike = (key == number and max - used or max) / c
end

--> left
if code == 'F' then
  call('HSET', hash, string.format('F/%.0f/0/-/-:%.0f', window, p1), p2)
end

--> count
if code == 'F' then
  if key ~= p1 then
    p1, p2 = key, 0
  end
  p2 = p2 + alike * cost
end
