-- fixedwindow.lua: the units of each fixed window.
--
-- Of a limit the account's hash has, by the window's number, the units booked in it: for the
-- window under way, the one before it (for clocks that step back) and those booked ahead.
-- Where calls begin windows firstuse.lua keeps them. No window ever holds more than Max; up
-- to twice Max can leave within one Window, across the edge of two.
--
-- Windows with an edge in a time zone: the k-th begins at the first instant at
-- which local time reaches k Windows, so that one that has begun does not begin
-- again when the clocks are put back. Their edges are the provider's, so slots keep
-- the margin free before the end of a window, as a call arrives so much later, and
-- half of it behind its beginning, as clocks differ. memstore has the same in Go.

do
  local UTC = {0}

  -- reaches returns the first instant at which local time is so late.
  local function reaches(zone, late)
    local i = 1
    while true do
      local at = late - zone[i]
      if i > 1 then
        at = math.max(at, zone[i - 1])
      end
      if i == #zone or at < zone[i + 1] then
        return at
      end
      i = i + 2
    end
  end

  -- latest returns the latest local time up to an instant.
  local function latest(zone, instant)
    local best, i = -math.huge, 1
    while i < #zone and instant >= zone[i + 1] do
      best = math.max(best, zone[i + 1] - 1 + zone[i])
      i = i + 2
    end
    return math.max(best, instant + zone[i])
  end

  -- numberOf returns the number of the aligned window that contains an instant.
  local function numberOf(m, instant)
    return math.floor(latest(zones[m.zone] or UTC, instant) / m.window)
  end

  -- A window as it stands has from and to, its units that count, and slots in
  -- [opens, closes).
  local function aligned(m, key)
    local zone, margin = zones[m.zone] or UTC, marginOf(m)
    local from, to = reaches(zone, key * m.window), reaches(zone, (key + 1) * m.window)
    return {
      from = from, opens = from + math.floor(margin / 2), closes = to - margin, to = to,
      units = get(m, text(key)) or 0,
    }
  end

  local function at(m, instant)
    return aligned(m, numberOf(m, instant))
  end

  -- keys returns the windows that are kept, in order.
  local function keys(m)
    local all = {}
    for i, kept in ipairs(keptOf(m)) do
      all[i] = tonumber(kept.name)
    end
    table.sort(all)
    return all
  end

  -- windows returns those that are kept, in order.
  local function windows(m)
    local all = {}
    for i, key in ipairs(keys(m)) do
      all[i] = aligned(m, key)
    end
    return all
  end

  local function add(m, key, cost)
    local units = get(m, text(key))
    m.begun = m.begun or not units
    put(m, text(key), (units or 0) + cost)
  end

  local function commit(m, slot, cost)
    add(m, numberOf(m, slot), cost)
  end

  -- What was spent so late in a window that it may have arrived in the next counts
  -- in both.
  local function record(m, slot, cost)
    local first, second = numberOf(m, slot), numberOf(m, slot + marginOf(m))
    add(m, first, cost)
    if second ~= first then
      add(m, second, cost)
    end
  end

  local function cancel(m, slot, cost)
    local key = numberOf(m, slot)
    local units = get(m, text(key)) or 0
    put(m, text(key), units > cost and units - cost or nil)
  end

  local function trim(m, oldest)
    oldest = numberOf(m, oldest)
    for _, key in ipairs(keys(m)) do
      if key < oldest then
        put(m, text(key), nil)
      end
    end
  end

  -- Nothing is counted behind the last slot.
  local function front(m)
    local key = numberOf(m, m.account.edge)
    if m.zone ~= '-' or get(m, text(key + 1)) then
      return nil
    end
    return 'F', {key, get(m, text(key)) or 0, 0, 0, m.max, marginOf(m), m.window}
  end

  local alignedWindows = {
    at = at, windows = windows, commit = commit, record = record, cancel = cancel, trim = trim, front = front,
    reset = function()
      return 0 -- the calendar says when they end
    end,
  }

  -- windowsOf returns what keeps the windows of a limit.
  local function windowsOf(m)
    return m.zone == '*' and firstUse or alignedWindows
  end

  -- pass returns what has windowsOf carry out a step.
  local function pass(step)
    return function(m, ...)
      return windowsOf(m)[step](m, ...)
    end
  end

  counters.F = {
    earliest = function(m, from, cost, max)
      local windowAt = windowsOf(m).at
      while true do
        local w = windowAt(m, from)
        local slot = math.max(from, w.opens)
        -- An empty window takes what no limit should have let through to here.
        if slot < w.closes and (w.units + cost <= max or w.units == 0) then
          return slot, math.max(cost, max - w.units)
        end
        from = w.to
      end
    end,

    commit = pass('commit'),
    cancel = pass('cancel'),
    record = pass('record'),
    reset = pass('reset'),
    front = pass('front'),

    usage = function(m, now)
      local all, used, ahead = {}, 0, 0
      for _, w in ipairs(windowsOf(m).windows(m)) do
        if w.to > now then
          all[#all + 1] = w
          if w.from > now then
            ahead = ahead + w.units
          else
            used = used + w.units
          end
        end
      end
      local least, units = math.min(used + ahead, m.max), 0
      for i = least > 0 and #all or 0, 1, -1 do
        units = units + all[i].units
        if units >= least then
          return used, ahead, all[i].to
        end
      end
      return used, ahead, 0
    end,

    left = function(m, slot)
      return windowsOf(m).at(m, slot).units
    end,

    -- Old windows are looked for when a new one begins.
    trim = function(m, now)
      if m.begun or m.account.windowOfFront then
        windowsOf(m).trim(m, now - m.window)
      end
    end,
  }
end
