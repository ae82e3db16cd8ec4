-- frontgcra.lua: what front.lua does where GCRA counts: see gcra.lua. p1 is the theoretical arrival time,
-- p2 its part, p3 the burst.

--> slot
if code == 'G' and c <= max and c <= p3 and window * c <= 9007199254740992 then
  local tat, part, burst = p1, p2, p3
  local spare = window * (burst - c)
  local lower, latest = tat + math.ceil((part - spare) / max) + margin, (spare - spare % max) / max
  if spare > 9007199254740992 then
    latest = math.ceil(window * ((burst - c) / max)) + 1
    lower = tat + math.ceil(window * ((c - burst) / max)) + 1 + margin
  end
  s, begins, beginsPart = from > lower and from or lower, tat, part
  if begins < s then
    begins, beginsPart = s, 0
  end
  stopsPart = window * c % max
  stops, stopsPart = begins + (window * c - stopsPart) / max, beginsPart + stopsPart
  if stopsPart >= max then
    stops, stopsPart = stops + 1, stopsPart - max
  end
  latest = s - margin + latest
  if lower >= s then
    begins, beginsPart = tat, part
  elseif begins > latest or begins == latest and beginsPart > 0 then
    begins, beginsPart = latest, 0
  end
  if tat > begins or tat == begins and part > beginsPart then
    begins, beginsPart = tat, part
  end
  -- What would be free before it is to be noted.
  if begins > now and (begins > tat or beginsPart > part) then
    s = nil
  end
end

--> count
if code == 'G' then
  more = struct.pack('>I7I5I7I5I5', begins > 0 and begins or 0, beginsPart, stops, stopsPart, max)
  p1, p2 = stops, stopsPart
end
