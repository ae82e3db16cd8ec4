-- firstuse.lua: windows of FixedWindow that begin with a call (zone '*').
--
-- Of a limit the account's hash has, by a window's beginning:
--
--   KEY     the units booked in it
--   KEY<    its last slot
--   KEY^    the units that stand at its beginning
--   KEY>    its end, if reset.lua told it
--   KEY+    when it may end, if what began it was cancelled
--
-- The provider's window begins when the first call arrives, up to the margin late. So
-- windows are longer by the margin, and no slot lies in the last two margins: it would
-- arrive after the earliest end of the provider's. A call that would begin a window
-- which reaches into one that is booked ahead waits for that. Where what began a window
-- was cancelled the provider's begins with another of its calls, and ends up to a window
-- after the last: until then it counts. A window without units is forgotten.

-- marginOf returns the margin of a limit's windows.
local function marginOf(m)
  return math.min(m.margin, math.floor(m.window / 4))
end

-- firstUse has what fixedwindow.lua asks of these windows, as alignedWindows does.
local firstUse = {}

do
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
  function firstUse.at(m, instant)
    local list = live(m)
    local i, found = inUse(m, list, instant)
    if found then
      return view(m, list[i], beginning(list, i + 1))
    end
    local next = beginning(list, i)
    local fits = next - instant >= m.window + marginOf(m)
    return {from = instant, opens = instant, closes = fits and instant + 1 or instant, to = next, units = 0}
  end

  -- windows returns those that are kept, in order.
  function firstUse.windows(m)
    local list, all = live(m), {}
    for i, w in ipairs(list) do
      all[i] = view(m, w, beginning(list, i + 1))
    end
    return all
  end

  -- addToWindow records units in the i-th window that a call began.
  local function addToWindow(m, i, slot, cost)
    local w = live(m)[i]
    w.units, w.last = w.units + cost, math.max(w.last, slot)
    if slot == w.key then
      w.first, w.late = w.first + cost, nil
    end
    store(m, w)
  end

  function firstUse.commit(m, slot, cost)
    local i, found = inUse(m, live(m), slot)
    if not found then
      table.insert(live(m), i, {key = slot, units = 0, last = 0, first = 0})
      m.begun = true
    end
    addToWindow(m, i, slot, cost)
  end

  -- What was spent before a window, but too late for one of its own, has begun that one.
  function firstUse.record(m, slot, cost)
    local list = live(m)
    local i, found = inUse(m, list, slot)
    local margin = marginOf(m)
    local length = m.window + margin
    if found or beginning(list, i) - slot >= length then
      firstUse.commit(m, slot, cost)
      return
    end
    if list[i].last < slot + length - 2 * margin then
      forget(m, list[i])
      list[i].key, list[i].first = slot, 0
    end
    addToWindow(m, i, slot, cost)
  end

  -- cancel takes units out of the window of their slot.
  function firstUse.cancel(m, slot, cost)
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

  function firstUse.trim(m, oldest)
    local list = live(m)
    m.list = {}
    for _, w in ipairs(list) do
      if w.key < oldest and view(m, w, math.huge).to <= oldest then
        forget(m, w)
      else
        m.list[#m.list + 1] = w
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
  function firstUse.reset(m, now, instant, within)
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

  -- Nothing is counted behind the last slot, and no window ends where it was told.
  function firstUse.front(m)
    local list = live(m)
    local w = list[#list]
    if w and (w.till or w.late or w.last ~= m.account.edge) then
      return nil
    end
    w = w or {key = 0, units = 0, first = 0}
    return '*', {w.key, w.units, w.first, 0, m.max, marginOf(m), m.window}
  end
end
