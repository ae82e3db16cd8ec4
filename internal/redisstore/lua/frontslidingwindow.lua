-- frontslidingwindow.lua: what front.lua does where a SlidingWindow counts: see slidingwindow.lua. p1 is the
-- number of the last window, p2 its units, p3 its limit, or 2^53, p4 the units of the window before.

--> slot
if code == 'W' and c <= max then
  key = (from - from % window) / window
  for _ = 1, 4 do
    local older, room = 0, max - c
    if key == p1 then
      older, room = p4, room - p2
    elseif key == p1 + 1 then
      older = p2
    end
    if room >= 0 then
      s, alike = from > key * window and from or key * window, (room - older) / c + 1
      if older > room then
        local share = math.floor(room * window / older)
        if room * window > 9007199254740992 then
          share = math.min(share - 1, 9007199254740992)
        end
        s = math.max(s, (key + 1) * window + margin - share)
      end
      if s < (key + 1) * window - margin then
        break
      end
    end
    key, s = key + 1, nil
  end
end

--> left
if code == 'W' then
  local name = string.format('W/%.0f/0/-/-:%.0f', window, p1)
  call('HSET', hash, name, p2, name .. '<', p3)
end

--> count
if code == 'W' then
  if key ~= p1 then
    p1, p2, p3, p4 = key, 0, 9007199254740992, key == p1 + 1 and p2 or 0
  end
  p2 = p2 + alike * cost
  local remains = (key + 1) * window - (s - margin > key * window and s - margin or key * window)
  local product = (max > p2 and max - p2 or 0) * window
  local share = math.floor(product / remains)
  if product > 9007199254740992 then
    share = share - 1
  end
  p3 = share < p3 and share or p3
end
