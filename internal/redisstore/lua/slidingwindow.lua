-- slidingwindow.lua: two fixed windows, the older one weighted.
--
-- The provider counts in windows that are aligned to the epoch, and admits a call if
-- what it has counted in the call's window, the call included, and what it counted in
-- the window before, times the share of that which still overlaps a sliding one, are
-- at most Max. Kept are, by the number of a window,
--
--   N     the units booked in it
--   N<    how many the window before may hold without breaking what is booked in it
--
-- The promise: fewer than 2 * Max units in any window. Where that begins in one
-- window and the last of its calls leaves the next one at share e of it, with A units
-- in the one and B in the other: A * (1 - e) + B <= Max, so A + B <= Max + A * e.
-- Max at the end of a window and then one every Window / Max are 2 * Max - 1.
--
-- Out of order: a booking is counted with all that is booked in its window, so those
-- behind it in the window, for which the window before weighs less, stay admitted.
-- Those in the next window hold it to that window's N<, the least of what each had
-- room for when it was booked.
--
-- The margin: slots keep a margin from the end of a window, and so every call arrives
-- in the window of its slot. There a late call only finds the window before weigh
-- less. The window before is weighed as a margin earlier, for a provider whose clock is
-- that much behind. More than a quarter of the window is not kept free.

do
  local MOST = 9007199254740992

  -- part returns units * numerator / denominator, rounded down.
  local function part(units, numerator, denominator)
    local product = units * numerator
    local share = math.floor(product / denominator)
    if product > MOST then
      share = share - 1
    end
    return math.min(share, MOST)
  end

  local function early(m)
    return math.min(m.margin, math.floor(m.window / 4))
  end

  -- unitsIn returns the units that are booked in a window.
  local function unitsIn(m, k)
    return get(m, text(k)) or 0
  end

  -- weighted returns what the window before counts for, rounded up.
  local function weighted(m, now)
    local k = math.floor(now / m.window)
    return math.ceil(unitsIn(m, k - 1) * ((k + 1) * m.window - now) / m.window)
  end

  -- eachWindow calls a function with the number of every window of which something
  -- is kept.
  local function eachWindow(m, visit)
    for _, kept in ipairs(keptOf(m)) do
      local number, mark = string.match(kept.name, '^(%d+)(<?)$')
      visit(tonumber(number), kept.name, mark)
    end
  end

  -- roomIn returns how many units there is room for at a slot so far behind the beginning
  -- of its window, where the window before has older units, and its own and the next one
  -- leave room for so many.
  local function roomIn(m, behind, older, room, limit)
    -- The least that must be left of Max.
    local least = math.min(older, math.max(0, math.ceil((early(m) + m.window - behind) * older / m.window)))
    while least < older and part(least, m.window, older) < early(m) + m.window - behind do
      least = least + 1
    end
    return math.min(room - least, limit or room)
  end

  -- commit is for what was spent too. With that it may be more than Max: then nothing leaves
  -- until it weighs little enough, at the latest when the next window is over.
  local function commit(m, slot, cost)
    local k = math.floor(slot / m.window)
    put(m, text(k), unitsIn(m, k) + cost)
    local remains = (k + 1) * m.window - math.max(k * m.window, slot - early(m))
    local limit = part(math.max(0, m.max - unitsIn(m, k)), m.window, remains)
    put(m, text(k) .. '<', math.min(limit, get(m, text(k) .. '<') or limit))
  end

  counters.W = {
    commit = commit,
    record = commit,

    -- A window that cannot take it has something booked in it, or beside it: there are
    -- no more of those than bookings ahead.
    earliest = function(m, from, cost, max)
      local k = math.floor(from / m.window)
      while true do
        local begins, ends = k * m.window, (k + 1) * m.window - early(m)
        local older, units = unitsIn(m, k - 1), unitsIn(m, k) + cost
        local room, limit = max - units, get(m, text(k + 1) .. '<')
        if room >= 0 and (not limit or units <= limit) then
          local slot = math.max(from, begins)
          if older > room then
            slot = math.max(slot, begins + early(m) + m.window - part(room, m.window, older))
          end
          if slot < ends then
            return slot, roomIn(m, slot - begins, older, max - units + cost, limit and limit - units + cost)
          end
        end
        k = k + 1
      end
    end,

    cancel = function(m, slot, cost)
      local k = math.floor(slot / m.window)
      local units = unitsIn(m, k)
      put(m, text(k), units > cost and units - cost or nil)
      if units <= cost then
        put(m, text(k) .. '<', nil)
      end
    end,

    -- What is booked ahead counts in full, in the window that runs too.
    usage = function(m, now)
      local current, rest, ahead = math.floor(now / m.window), 0, 0
      local windows = {current - 1}
      eachWindow(m, function(k, _, mark)
        if k >= current and mark == '' then
          windows[#windows + 1] = k
          rest = rest + unitsIn(m, k)
          ahead = ahead + (k > current and unitsIn(m, k) or 0)
        end
      end)
      table.sort(windows)
      local used = weighted(m, now) + rest
      if used == 0 then
        return 0, 0, 0
      end
      -- While the window after k runs, k is weighted, and rest are all behind k.
      local target = math.min(used, m.max) - 1
      for _, k in ipairs(windows) do
        local units = unitsIn(m, k)
        if k >= current then
          rest = rest - units
        end
        if rest <= target and units > 0 then
          return used - ahead, ahead, (k + 2) * m.window - part(target - rest, m.window, units)
        end
      end
      return used - ahead, ahead, 0
    end,

    -- Entered in one window instead of two these weigh no less at any later instant.
    left = function(m, slot)
      return weighted(m, slot) + unitsIn(m, math.floor(slot / m.window))
    end,

    front = function(m)
      local k = math.floor(m.account.edge / m.window)
      return 'W', {k, unitsIn(m, k), get(m, text(k) .. '<') or MOST, unitsIn(m, k - 1), m.max, early(m), m.window}
    end,

    -- A window more than counts is kept, for a clock that steps back.
    trim = function(m, now)
      local oldest = math.floor(now / m.window) - 2
      eachWindow(m, function(k, name)
        if k < oldest then
          put(m, name, nil)
        end
      end)
    end,
  }
end
