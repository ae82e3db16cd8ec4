-- search.lua: where there is room in the logs of an account.

local LOOKS = 512
local earliestInLog

do
  -- A search ends after PLACES without room, or after LOOKS at logs, of which one at a stream
  -- counts as many as STREAM. The booking then takes what is vacant, or goes behind all others.
  -- memstore has the same bounds.
  local PLACES, STREAM = 32, 4

  -- slotBetween returns the first slot in [from, before) at which no window holds more
  -- than room, if there is one and it need not be looked for any longer.
  local function slotBetween(view, from, before, room, window, last, looks, price)
    local slot, place = from, 0
    while slot < before and place < PLACES do
      -- The windows with the slot in them end before one has passed; those that end
      -- later than this hold no more than room.
      local ends, full = math.max(slot, math.min(slot + window - 1, last)), false
      while not full do
        if looks.left <= 0 or work + weight > LONGEST then
          return nil
        end
        looks.left = looks.left - view.logs * price
        local begins = opens(view, slot - window, ends, room, last)
        if begins == slot - window then
          return slot
        end
        full = begins > ends - window
        ends = begins + window - 1
      end
      slot, place = ends + 1, place + 1
    end
    return nil
  end

  -- earliestInLog returns the first slot not before from at which no window holds more than
  -- max with the new booking in it, and if several are to be booked its capacity, where
  -- that is known. From may be long ago, as of one whose lane was idle: what has passed takes
  -- nothing from the search of what is ahead.
  function earliestInLog(m, from, max, lane, looks)
    local charge, window, room = m.charge, m.window, max - lane.cost
    local view, now, last = viewFor(charge, m.scope), charge.now, charge.edge
    local price = m.letter == 'S' and STREAM or 1
    if last == 0 then
      return from, max
    end
    local free, capacity = vacant.next(m, math.max(from, now), lane, m.max - room)
    if free == from then
      return from, capacity
    end
    if from < last and from < now then
      local slot = slotBetween(view, from, now, room, window, last, looks, price)
      if slot then
        return slot
      end
      from = now
    end
    local slot = slotBetween(view, from, math.min(free or last, last), room, window, last, looks, price)
    if slot then
      return slot
    elseif free and free <= last then
      return free, capacity
    end
    slot = math.max(from, last)
    slot = opens(view, slot - window, nil, room, last) + window
    return slot, lane.several and max - (countIn(view, slot - window))
  end
end
