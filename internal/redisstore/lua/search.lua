-- search.lua: where there is room in the logs of an account.

local SEARCHES = 512
local earliestInLog

do
  -- A search ends after PLACES without room, or after SEARCHES in logs, of which one in a stream counts
  -- as four: it takes so many times as long. The booking then goes behind all others.
  -- memstore has the same bounds.
  local PLACES, PRICES = 32, {L = 1, S = 4}

  -- slotBetween returns the first slot in [from, before) at which no window holds more
  -- than room, if there is one and it need not be looked for any longer.
  local function slotBetween(view, from, before, room, window, last, searches, price)
    local slot, place = from, 0
    while slot < before and place < PLACES do
      -- The windows with the slot in them end before one has passed; those that end
      -- later than this hold no more than room.
      local ends, full = math.max(slot, math.min(slot + window - 1, last)), false
      while not full do
        if searches.left <= 0 or work + weight > LONGEST then
          return nil
        end
        searches.left = searches.left - view.logs * price
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
  -- that is known. From may be long ago, as of one whose queue was idle: what has passed takes
  -- nothing from the search of what is ahead.
  function earliestInLog(m, from, cost, max, queue, searches)
    local account, window, room = m.account, m.window, max - cost
    local view, now, last = viewFor(account, m.scope), account.now, account.edge
    local price = PRICES[m.code]
    if last == 0 then
      return from, max
    end
    if from < last and from < now then
      local slot = slotBetween(view, from, now, room, window, last, searches, price)
      if slot then
        return slot
      end
      from = now
    end
    local slot = slotBetween(view, from, last, room, window, last, searches, price)
    if slot then
      return slot
    end
    slot = math.max(from, last)
    slot = opens(view, slot - window, nil, room, last) + window
    return slot, queue.several and max - (countIn(view, slot - window))
  end
end

-- usable returns how many units of a limit such a booking may use.
local function usable(max, reserve, cost)
  return reserve == 0 and max or math.max(cost, math.floor(max * (1000 - reserve) / 1000))
end

-- settle returns the first slot not before from that every limit admits, and how many such bookings all have room for
-- there. An account is charged with its units, if it has some, and with the queue's cost otherwise. How often logs are
-- searched for that is bounded for all limits together.
local function settle(accounts, from, queue)
  local slot, quiet, count = from, 0, 0
  local searches = {left = SEARCHES}
  local limits, capacities = {}, {}
  for _, account in ipairs(accounts) do
    for _, limit in ipairs(account.limits) do
      if covers(limit.scope, queue.scopes) then
        count = count + 1
        limits[count] = limit
      end
    end
  end
  local at = 1
  while quiet < count do
    local m = limits[at]
    local cost = m.account.units or queue.cost
    local max, earlier = usable(m.max, queue.reserve, cost), slot
    if counters[m.code] then
      slot, capacities[at] = counters[m.code].earliest(m, slot, cost, max)
    else
      slot, capacities[at] = earliestInLog(m, slot, cost, max, queue, searches)
    end
    quiet = slot == earlier and quiet + 1 or 1
    at = at % count + 1
  end
  local capacity = COSTLIEST
  for i = 1, count do
    local cost = limits[i].account.units or queue.cost
    capacity = math.min(capacity, math.floor((capacities[i] or cost) / cost))
  end
  return slot, capacity
end
