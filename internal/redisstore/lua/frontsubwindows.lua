-- frontsubwindows.lua: what front.lua does where SubWindows count: see subwindows.lua. p1 is the beginning of
-- the last cell, p2 its units, p3 its end, and max the room for all of its units.

--> slot
if code == 'U' and from < p3 and p2 + c <= max then
  s, alike = from, (max - p2) / c
end

--> count
if code == 'U' then
  p2 = p2 + alike * cost
end
