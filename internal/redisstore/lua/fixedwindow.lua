-- fixedwindow.lua: the units of each fixed window.
--
-- Of a limit the account's hash has, by the window's number or, where calls begin
-- windows (zone '*'), by its beginning:
--
--   KEY     the units booked in it
--   KEY<    where calls begin windows: its last slot
--   KEY^    likewise: the units that stand at its beginning
--   KEY>    likewise: its end, if reset.lua told it
--   KEY+    likewise: when it may end, if what began it was cancelled
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
-- for that. Where what began a window was cancelled the provider's begins with another of
-- its calls, and ends up to a window after the last: until then it counts. A window
-- without units is forgotten. memstore has the same in Go.

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

  -- view returns a window that a call began, where the next begins at next.
  local function view(m, w, next)
    local margin = marginOf(m)
    local ends = w.till or w.key + m.window + margin
    local to = math.min(math.max(ends, w.late or 0), next)
    return {from = w.key, opens = w.key, closes = math.min(ends - 2 * margin, to), to = to, units = w.units}
  end

  local function beginning(list, i)
    return list[i] and list[i].key or math.huge
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

  local MARKS = {[''] = 'units', ['<'] = 'last', ['^'] = 'first', ['>'] = 'till', ['+'] = 'late'}

  -- store keeps a window that a call began.
  local function store(m, w)
    for mark, name in pairs(MARKS) do
      put(m, text(w.key) .. mark, w[name])
    end
  end

  local function forget(m, w)
    store(m, {key = w.key})
  end

  -- live returns the windows that calls began, in order. The list is read once.
  local function live(m)
    if not m.list then
      local list, known = {}, {}
      for _, kept in ipairs(keptOf(m)) do
        local key, mark = string.match(kept.name, '^(%d+)(.?)$')
        local w = known[key]
        if not w then
          w = {key = tonumber(key), last = 0, first = 0}
          known[key], list[#list + 1] = w, w
        end
        w[MARKS[mark]] = tonumber(kept.value)
      end
      table.sort(list, function(a, b) return a.key < b.key end)
      m.list = list
    end
    return m.list
  end

  -- lastBefore returns the place of the last window that begins no later, or 0.
  local function lastBefore(list, instant)
    local low, high = 0, #list
    while low < high do
      local middle = math.ceil((low + high) / 2)
      if list[middle].key > instant then
        high = middle - 1
      else
        low = middle
      end
    end
    return low
  end

  -- inUse returns the place of the window that contains an instant, or of the one
  -- behind it, and whether it contains it.
  local function inUse(m, list, instant)
    local i = lastBefore(list, instant)
    if i > 0 and instant < view(m, list[i], beginning(list, i + 1)).to then
      return i, true
    end
    return i + 1, false
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

  -- addUnits records units in the i-th window that a call began.
  local function addToWindow(m, i, slot, cost)
    local w = live(m)[i]
    w.units, w.last = w.units + cost, math.max(w.last, slot)
    if slot == w.key then
      w.first, w.late = w.first + cost, nil
    end
    store(m, w)
  end

  local function commit(m, slot, cost)
    if m.zone ~= '*' then
      add(m, numberOf(m, slot), cost)
      return
    end
    local i, found = inUse(m, live(m), slot)
    if not found then
      table.insert(live(m), i, {key = slot, units = 0, last = 0, first = 0})
      m.begun = true
    end
    addToWindow(m, i, slot, cost)
  end

  -- What was spent so late in a window that it may have arrived in the next counts
  -- in both. Spent before a window that calls begin, but too late for one of its
  -- own, it has begun that one.
  local function record(m, slot, cost)
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
      forget(m, list[i])
      list[i].key, list[i].first = slot, 0
    end
    addToWindow(m, i, slot, cost)
  end

  -- cancel takes units out of the window of their slot.
  local function cancel(m, slot, cost)
    if m.zone ~= '*' then
      local key = numberOf(m, slot)
      local units = get(m, text(key)) or 0
      put(m, text(key), units > cost and units - cost or nil)
      return
    end
    local list = live(m)
    local i = lastBefore(list, slot)
    local w = list[i]
    if not w or slot > w.last then
      return
    end
    w.units = math.max(0, w.units - cost)
    if w.units == 0 and not w.till then
      forget(m, w)
      table.remove(list, i)
      return
    end
    if slot == w.key then
      w.first = math.max(0, w.first - cost)
    end
    if w.first == 0 and not w.till then
      w.late = w.last + m.window + marginOf(m)
    end
    store(m, w)
  end

  local function usage(m, now)
    local all, used, ahead = {}, 0, 0
    local function count(w)
      if w.to > now then
        all[#all + 1] = w
        if w.from > now then
          ahead = ahead + w.units
        else
          used = used + w.units
        end
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
    local least, units = math.min(used + ahead, m.max), 0
    for i = least > 0 and #all or 0, 1, -1 do
      units = units + all[i].units
      if units >= least then
        return used, ahead, all[i].to
      end
    end
    return used, ahead, 0
  end

  -- Old windows are looked for when a new one begins.
  local function trim(m, now)
    local list = m.zone == '*' and live(m)
    if not m.begun and not m.account.windowOfFront then
      return
    end
    local oldest = now - m.window
    if list then
      m.list = {}
      for _, w in ipairs(list) do
        if w.key < oldest and view(m, w, math.huge).to <= oldest then
          forget(m, w)
        else
          m.list[#m.list + 1] = w
        end
      end
      return
    end
    oldest = numberOf(m, oldest)
    for _, key in ipairs(keys(m)) do
      if key < oldest then
        put(m, text(key), nil)
      end
    end
  end

  -- reset corrects the window under way, or begins one, so that it ends at an
  -- instant, or so near to it: the provider's may end up to the margin later. It returns the instant
  -- before which no slot may come that was booked, or 0.
  --
  -- Windows that were booked ahead and begin before that end are parts of it. If
  -- it is too full then, or ends before its last slot, those who wait must book
  -- anew.
  local function reset(m, now, instant, within)
    if m.zone ~= '*' then
      return 0
    end
    local margin = marginOf(m)
    if instant <= now or instant > now + m.window + margin then
      return 0
    end
    local list = live(m)
    local i, found = inUse(m, list, now)
    if not found then
      table.insert(list, i, {key = now, units = 0, last = 0, first = 0})
      m.begun = true
    else
      local ends = view(m, list[i], math.huge).to
      if ends - margin - within <= instant and instant <= ends + within then
        return 0
      end
    end
    local w, merged = list[i], false
    w.till, w.late = math.max(instant, math.min(instant + within, now + m.window)) + margin, nil
    while beginning(list, i + 1) < w.till do
      local other = table.remove(list, i + 1)
      w.units, w.last, merged = w.units + other.units, math.max(w.last, other.last), true
      forget(m, other)
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
    cancel = cancel,
    record = record,
    usage = usage,
    left = function(m, slot)
      return at(m, slot).units
    end,
    trim = trim,
    reset = reset,

    -- Nothing is counted behind the last slot, and no window ends where it was told.
    front = function(m)
      local edge = m.account.edge
      if m.zone == '-' then
        local key = numberOf(m, edge)
        if get(m, text(key + 1)) then
          return nil
        end
        return 'F', {key, get(m, text(key)) or 0, 0, 0, m.max, marginOf(m), m.window}
      elseif m.zone ~= '*' then
        return nil
      end
      local list = live(m)
      local w = list[#list]
      if w and (w.till or w.late or w.last ~= edge) then
        return nil
      end
      w = w or {key = 0, units = 0, first = 0}
      return '*', {w.key, w.units, w.first, 0, m.max, marginOf(m), m.window}
    end,
  }
end
