-- bookclock.lua: what the time is of a call of book.lua.

-- bookingClock returns the time of a request, and by how much the server's clock was found to have stepped,
-- or 0. If the caller must compare the clocks again it returns nil, and the time by the server's.
--
-- The server's clock may step. Back, all would wait for it to catch up: time
-- stands still instead, as every window then only gets longer. Forward, logs
-- would seem to have left their windows: if the caller's clock has not moved so
-- far, and no other caller has seen such a time, the server's is put back. Two
-- clocks drift apart by less than a thousandth. A question that was long on its
-- way looks the same, so the caller compares again when it has the answer.
-- A caller that gives a now of its own and reckons none means what it says.
local function bookingClock(request, state)
  local reckoned, seen, offset, stepped = request.reckoned, state.seen, state.offset, 0
  local now = request.given > 0 and request.given + offset or clock('', offset)
  local compares = reckoned or request.given == 0
  if now < seen - STEP and compares then
    stepped = seen - now
  elseif reckoned and seen <= reckoned + STEP and
    now > reckoned + STEP + math.max(reckoned - seen, 0) / 1000 then
    if not request.found then
      return nil, now
    end
    stepped = -request.found
  end
  if stepped ~= 0 then
    now = now + stepped
    state.offset = offset + stepped
    writeState()
  end
  -- One that slips back by less stands still as well.
  if now < seen and compares then
    now = seen
  end
  return now, stepped
end
