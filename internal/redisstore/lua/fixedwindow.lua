-- fixedwindow.lua: the units of each fixed window.
--
-- Of a limit the account's hash has, by the window's number or, where calls begin
-- windows (zone '*'), by its beginning:
--
--   KEY     the units booked in it
--   KEY<    where calls begin windows: its last slot
--   KEY>    likewise: its end, if reset.lua told it
--
-- for the window under way, the one before it (for clocks that step back) and
-- those booked ahead. No window ever holds more than Max; up to twice Max can
-- leave within one Window, across the edge of two.
--
-- Windows with an edge in a time zone: the k-th begins at the first instant at
-- which local time reaches k Windows, so that one that has begun does not begin
-- again when the clocks are put back. Their edges are the provider's, so slots keep
-- the margin free before the end of a window, as a call arrives so much later, and
-- half of it behind its beginning, as clocks differ.
--
-- Where calls begin windows the provider's begins when the first one arrives, up to
-- the margin late. So windows are longer by the margin, and no slot lies in the
-- last two margins: it would arrive after the earliest end of the provider's. A
-- call that would begin a window which reaches into one that is booked ahead waits
-- for that. A window whose bookings were all handed back, and have passed, came to
-- nothing. fixedwindow.go is the same in Go.

do
  local UTC = {0}

  local function marginOf(m)
    return math.min(m.margin, math.floor(m.window / 4))
  end

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

  -- counted returns the units that count of those booked in a window.
  local function counted(m, units, from, to)
    if units == 0 or from >= m.charge.now then
      return units
    end
    return math.max(0, units - unusedIn(m, from, to))
  end

  -- A window as it stands has from and to, its units that count, and slots in
  -- [opens, closes).
  local function aligned(m, key)
    local zone, margin = zones[m.zone] or UTC, marginOf(m)
    local from, to = reaches(zone, key * m.window), reaches(zone, (key + 1) * m.window)
    return {
      from = from, opens = from + math.floor(margin / 2), closes = to - margin, to = to,
      units = counted(m, get(m, text(key)) or 0, from, to),
    }
  end

  -- view returns a window that a call began, where the next begins at next.
  local function view(m, w, next)
    local margin = marginOf(m)
    local ends = w.till or w.key + m.window + margin
    local to = math.min(ends, next)
    return {
      from = w.key, opens = w.key, closes = math.min(ends - 2 * margin, to), to = to,
      units = counted(m, w.units, w.key, to),
    }
  end

  local function beginning(list, i)
    return list[i] and list[i].key or math.huge
  end

  -- keys returns the windows that are kept, in order.
  local function keys(m)
    local all = {}
    for name in pairs(m.charge.fields) do
      if string.sub(name, 1, #m.name) == m.name then
        local key = string.match(name, '^%-?%d+$', #m.name + 1)
        if key then
          all[#all + 1] = tonumber(key)
        end
      end
    end
    table.sort(all)
    return all
  end

  local function store(m, w)
    local key = text(w.key)
    put(m, key, w.units)
    put(m, key .. '<', w.last)
    put(m, key .. '>', w.till)
  end

  local function forget(m, key)
    key = text(key)
    put(m, key, nil)
    if m.zone == '*' then
      put(m, key .. '<', nil)
      put(m, key .. '>', nil)
    end
  end

  -- live returns the windows that calls began, in order, and forgets those that
  -- came to nothing. The list is read once.
  local function live(m)
    if m.list then
      return m.list
    end
    local all, list = {}, {}
    for i, key in ipairs(keys(m)) do
      local name = text(key)
      all[i] = {key = key, units = get(m, name), last = get(m, name .. '<') or 0, till = get(m, name .. '>')}
    end
    for i, w in ipairs(all) do
      if not w.till and w.key < m.charge.now and view(m, w, beginning(all, i + 1)).units == 0 then
        forget(m, w.key)
      else
        list[#list + 1] = w
      end
    end
    m.list = list
    return list
  end

  -- inUse returns the place of the window that contains an instant, or of the one
  -- behind it, and whether it contains it.
  local function inUse(m, list, instant)
    local low, high = 1, #list + 1
    while low < high do
      local middle = math.floor((low + high) / 2)
      if list[middle].key > instant then
        high = middle
      else
        low = middle + 1
      end
    end
    if low > 1 and instant < view(m, list[low - 1], beginning(list, low)).to then
      return low - 1, true
    end
    return low, false
  end

  -- at returns the window that contains an instant. Where there is none it is one
  -- that a call at this instant would begin, if it ended before the next.
  local function at(m, instant)
    if m.zone ~= '*' then
      return aligned(m, numberOf(m, instant))
    end
    local list = live(m)
    local i, found = inUse(m, list, instant)
    if found then
      return view(m, list[i], beginning(list, i + 1))
    end
    local next = beginning(list, i)
    local fits = next - instant >= m.window + marginOf(m)
    return {from = instant, opens = instant, closes = fits and instant + 1 or instant, to = next, units = 0}
  end

  local function add(m, key, cost)
    local units = get(m, text(key))
    m.begun = m.begun or not units
    put(m, text(key), (units or 0) + cost)
  end

  -- addTo enters units in the i-th window that a call began.
  local function addTo(m, i, slot, cost)
    local w = live(m)[i]
    w.units, w.last = w.units + cost, math.max(w.last, slot)
    store(m, w)
  end

  local function commit(m, slot, cost)
    if m.zone ~= '*' then
      add(m, numberOf(m, slot), cost)
      return
    end
    local i, found = inUse(m, live(m), slot)
    if not found then
      table.insert(live(m), i, {key = slot, units = 0, last = 0})
      m.begun = true
    end
    addTo(m, i, slot, cost)
  end

  -- What was spent so late in a window that it may have arrived in the next counts
  -- in both. Spent before a window that calls begin, but too late for one of its
  -- own, it has begun that one.
  local function enter(m, slot, cost)
    local margin = marginOf(m)
    if m.zone ~= '*' then
      local first, second = numberOf(m, slot), numberOf(m, slot + margin)
      add(m, first, cost)
      if second ~= first then
        add(m, second, cost)
      end
      return
    end
    local list = live(m)
    local i, found = inUse(m, list, slot)
    local length = m.window + margin
    if found or beginning(list, i) - slot >= length then
      commit(m, slot, cost)
      return
    end
    if list[i].last < slot + length - 2 * margin then
      forget(m, list[i].key)
      list[i].key = slot
    end
    addTo(m, i, slot, cost)
  end

  local function usage(m, now)
    local all, used = {}, 0
    local function count(w)
      if w.to > now then
        all[#all + 1] = w
        used = used + w.units
      end
    end
    if m.zone == '*' then
      local list = live(m)
      for i, w in ipairs(list) do
        count(view(m, w, beginning(list, i + 1)))
      end
    else
      for _, key in ipairs(keys(m)) do
        count(aligned(m, key))
      end
    end
    local least, units = math.min(used, m.max), 0
    for i = used > 0 and #all or 0, 1, -1 do
      units = units + all[i].units
      if units >= least then
        return used, all[i].to
      end
    end
    return used, 0
  end

  -- Old windows are looked for when a new one begins.
  local function trim(m, now)
    local list = m.zone == '*' and live(m)
    if not m.begun then
      return
    end
    local oldest = now - m.window
    if list then
      for _, w in ipairs(list) do
        if w.key < oldest and view(m, w, math.huge).to <= oldest then
          forget(m, w.key)
        end
      end
      m.list = nil
      return
    end
    oldest = numberOf(m, oldest)
    for _, key in ipairs(keys(m)) do
      if key < oldest then
        forget(m, key)
      end
    end
  end

  -- reset corrects the window under way, or begins one, so that it ends at an
  -- instant: the provider's may end up to the margin later. It returns the instant
  -- before which no slot may come that was booked, or 0.
  --
  -- Windows that were booked ahead and begin before that end are parts of it. If
  -- it is too full then, or ends before its last slot, those who wait must book
  -- anew.
  local function reset(m, now, instant)
    local margin = marginOf(m)
    if instant <= now or instant > now + m.window + margin then
      return 0
    end
    local list = live(m)
    local i, found = inUse(m, list, now)
    if not found then
      table.insert(list, i, {key = now, units = 0, last = 0})
      m.begun = true
    else
      local ends = view(m, list[i], math.huge).to
      if ends - margin <= instant and instant <= ends then
        return 0
      end
    end
    local w, merged = list[i], false
    w.till = instant + margin
    while beginning(list, i + 1) < w.till do
      local other = table.remove(list, i + 1)
      w.units, w.last, merged = w.units + other.units, math.max(w.last, other.last), true
      forget(m, other.key)
    end
    store(m, w)
    local v = view(m, w, math.huge)
    if w.last >= v.closes or (merged and v.units > m.max) then
      return w.last + 1
    end
    return 0
  end

  counters.F = {
    earliest = function(m, from, cost, max)
      while true do
        local w = at(m, from)
        local slot = math.max(from, w.opens)
        -- An empty window takes what no limit should have let through to here.
        if slot < w.closes and (w.units + cost <= max or w.units == 0) then
          return slot, math.max(cost, max - w.units)
        end
        from = w.to
      end
    end,

    commit = commit,
    enter = enter,
    usage = usage,
    left = function(m, slot)
      return at(m, slot).units
    end,
    trim = trim,
    reset = reset,
  }
end
