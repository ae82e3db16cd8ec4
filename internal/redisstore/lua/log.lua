-- log.lua: the exact log of an account, whatever it is kept in.
--
-- A log is one run of entries, or several. A run only grows at its end: its
-- slots never decrease. A booking that overtakes others begins a second run, and
-- requests of other scopes have runs of their own, so that a limit that covers
-- some scopes only counts some runs. What a run is kept in is a table in logs,
-- by the letter of its algorithm:
--
--   prefix                         of its key
--   open(run)                      reads run.total, the units booked up to now
--                                  (modulo MODULUS), run.last, the slot that none
--                                  comes before, and run.size, 0 if it is empty
--   newest(run, need)              the slot of the newest entry that, with all
--                                  that counts since it, is more than need units
--   after(run, slot)               the age of the first entry with a later slot
--   append(run, slot, cost)        enters
--   has(run, slot, before, cost)   whether those units were entered at that slot
--   split(run, slot, before, cost)  makes those units an entry of their own, if it
--                                  must; has(run, slot, before, cost) holds
--   last(run)                      the last entry as pack() names it, or nil; of
--                                  one that should be two the second, see lastPart
--   cut(run)                       removes what last(run) has named
--   trim(run, now, window, largest, count)  removes some of what can matter no more,
--                                  after so many bookings, and returns the last slot of that
--
-- An entry's age is in units: all that was booked since it, itself included.
-- Units that were handed back stay in the log and are also in the account's set
-- of free ones, as holes. While its slot has not come a hole counts, and the next
-- booker takes it; once its slot has passed unused it counts for nothing.
-- slidinglog.go is the same in Go.

local logs = {}

local MODULUS = 4503599627370496
-- More holes than this are not kept: the oldest counts as spent.
local HOLES = 512
-- Of the same scopes no more runs than this are begun, and of all scopes together
-- no more than that, beside the first of each: who would need another waits for the
-- first run that ends.
local RUNS, ALL_RUNS = 8, 72
-- An overtaker that has found no room in so many places goes behind all others,
-- and so does one for whom runs were looked at so often. To search a run for an
-- entry is to look at it several times. Where behind all others its place is may
-- take it twice as many looks again; then it is content with a later one.
local PLACES = 32
local LOOKS, SEARCH = 512, 4

local function pack(before, cost)
  return struct.pack('>I7I5', before, cost)
end

local function unpackEntry(text, at)
  return struct.unpack('>I7I5', text, at)
end

-- openRun reads a run.
local function openRun(account, kind, scopes, number, now)
  local run = {kind = logs[kind], letter = kind, account = account, scopes = scopes, number = number, now = now}
  run.holes, run.unspent, run.known = {}, 0, {}
  run.key = base .. run.kind.prefix .. account
  if scopes ~= '' or number > 0 then
    run.key = run.key .. ':' .. scopes .. '/' .. number
  end
  -- A log does not begin at 0: after a loss its entries would bear the names of
  -- those that were lost, and be handed back in their stead.
  run.total, run.last = now % MODULUS, 0
  run.kind.open(run)
  run.opened = run.total
  return run
end

-- lastPart returns before and cost of what is handed back of the end of a run's
-- last entry, or of all of it: for storages that split nothing.
local function lastPart(run, entry)
  local free = base .. ':free:' .. run.account
  for _, name in ipairs(call('ZRANGEBYSCORE', free, text(entry.slot), text(entry.slot))) do
    if #name == 15 and string.find(name, '^%z' .. run.letter .. '0') then
      local before, cost = unpackEntry(name, 4)
      if before >= entry.before and before + cost == entry.before + entry.cost then
        return before, cost
      end
    end
  end
  return entry.before, entry.cost
end

-- unspentHole notes a hole whose slot has passed. The newest come first, but those
-- of one slot in the order of their lanes' names.
local function unspentHole(run, before, cost)
  local holes, age = run.holes, (run.total - before) % MODULUS
  local at = #holes + 1
  while at > 1 and holes[at - 1].age > age do
    at = at - 1
  end
  table.insert(holes, at, {age = age, cost = cost})
  for i = at, #holes do
    holes[i].sum = holes[i].cost + (i > 1 and holes[i - 1].sum or 0)
  end
  run.unspent = run.unspent + cost
end

-- spent returns how many of the units of that age count.
local function spent(run, age)
  if run.unspent == 0 then
    return age
  end
  local low, high, passed = 1, #run.holes, 0
  while low <= high do
    local middle = math.floor((low + high) / 2)
    local hole = run.holes[middle]
    if hole.age > age then
      high = middle - 1
    else
      passed = hole.sum
      low = middle + 1
    end
  end
  return age - passed
end

-- beyond is a slot as the bound of a range without it. Many runs are asked for one
-- slot, and to spell it out takes as long as to look it up.
local spelt, bound
local function beyond(slot)
  if slot ~= spelt then
    spelt, bound = slot, '(' .. text(slot)
  end
  return bound
end

-- unitsAfter returns the units of a run that count with slots after the given one. In
-- one decision the same is asked again and again.
local function unitsAfter(run, slot, looks)
  slot = math.max(slot, 0)
  if slot >= run.last or run.size == 0 then
    return 0
  end
  looks.left = looks.left - 1
  local units = run.known[slot]
  if not units then
    local age = run.kind.after(run, slot)
    units = age and spent(run, age) or 0
    run.known[slot] = units
  end
  return units
end

-- since returns the units of some runs that count with slots after the given one.
local function since(runs, slot)
  local units, looks = 0, {left = 0}
  for _, run in ipairs(runs) do
    units = units + unitsAfter(run, slot, looks)
  end
  return units
end

-- newest returns the slot of a run's newest entry that, with all that counts since
-- it, is more than need units.
local function newest(run, need, looks)
  looks.left = looks.left - SEARCH
  return run.kind.newest(run, need)
end

-- opens returns the first slot not before low after which no more than room units
-- count up to the slot high. A run with no entry between the two need not be looked
-- at in between, and the closer they come the fewer runs have one.
local function opens(runs, low, high, room, looks)
  if #runs == 1 then
    return math.max(low, newest(runs[1], unitsAfter(runs[1], high, looks) + room, looks) or low)
  end
  -- Of the runs with entries between the two, what counts after each; and of all what
  -- counts in between.
  local some, units, turn = {}, 0, 0
  for _, run in ipairs(runs) do
    local most = unitsAfter(run, low, looks)
    local least = most > 0 and unitsAfter(run, high, looks) or 0
    if most > least then
      some[#some + 1], units = {run = run, most = most, least = least}, units + most - least
    end
  end
  if units <= room then
    return low
  end
  while #some > 1 and high - low > 1 and looks.left > -2 * LOOKS do
    -- Where the slot is in the run that has the most entries it is about in all, and
    -- it is between there and as far again from the end. Where the runs are not alike,
    -- halving the distance every third time comes to an end.
    local middle = math.floor((low + high) / 2)
    turn = turn % 3 + 1
    if turn < 3 then
      local longest = some[1]
      for _, one in ipairs(some) do
        longest = one.most - one.least > longest.most - longest.least and one or longest
      end
      local part = (units - room) / units
      if turn == 2 then
        part = part < 0.5 and 2 * part or 2 * part - 1
      end
      local left = math.max(1, math.ceil((longest.most - longest.least) * part))
      middle = newest(longest.run, longest.most - left, looks) or middle
      middle = math.max(low + 1, math.min(middle, high - 1))
    end
    local behind = 0
    for _, one in ipairs(some) do
      one.units = unitsAfter(one.run, middle, looks)
      behind = behind + one.units - one.least
    end
    local later, count = behind > room, 0
    for i, one in ipairs(some) do
      some[i] = nil
      one[later and 'most' or 'least'] = one.units
      if one.most > one.least then
        count = count + 1
        some[count] = one
      end
    end
    if later then
      low, units = middle, behind
    else
      high, units, room = middle, units - behind, room - behind
    end
  end
  return #some == 1 and newest(some[1].run, some[1].least + room, looks) or high
end

local function lastOfRuns(runs)
  local last = 0
  for _, run in ipairs(runs) do
    last = math.max(last, run.last)
  end
  return last
end

-- slotBetween returns the first slot in [from, before) at which no window holds more
-- than room, if there is one and it need not be looked for any longer.
local function slotBetween(runs, from, before, room, window, last, looks)
  local slot, place = from, 0
  while slot < before and place < PLACES do
    -- The windows with the slot in them end before one has passed; those that end
    -- later than this hold no more than room.
    local ends, full = math.max(slot, math.min(slot + window - 1, last)), false
    while not full do
      if looks.left <= 0 then
        return nil
      end
      local begins = opens(runs, slot - window, ends, room, looks)
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

-- earliestInLog returns the first slot not before from at which no window holds
-- more than max with the new booking in it, and if several are to be booked its
-- capacity, where nothing is booked behind it. From may be long ago, as of one whose
-- lane was idle: what has passed takes nothing from the search of what is ahead.
local function earliestInLog(runs, from, cost, max, window, looks, several)
  local room, last = max - cost, lastOfRuns(runs)
  if last == 0 then
    return from, max
  end
  local now = runs[1].now
  if from < last and from < now then
    local slot = slotBetween(runs, from, now, room, window, last, looks)
    if slot then
      return slot
    end
    from = now
  end
  local slot = slotBetween(runs, from, last, room, window, last, looks)
  if slot then
    return slot
  end
  slot = math.max(from, last)
  slot = opens(runs, slot - window, slot, room, looks) + window
  return slot, several and max - since(runs, slot - window)
end

-- logUsage returns the units used of a limit, and when the next is free.
local function logUsage(runs, now, max, window)
  local units = since(runs, now - window)
  if units == 0 then
    return 0, 0
  end
  return units, opens(runs, now - window, lastOfRuns(runs), math.min(units, max) - 1, {left = LOOKS}) + window
end

-- endOfFirst returns when the first run of those scopes ends that another booking
-- can be entered behind, where no more may be begun.
local function endOfFirst(runs, scopes)
  local count, first = 0, math.huge
  for _, run in ipairs(runs) do
    if run.scopes == scopes then
      count, first = count + 1, math.min(first, run.last)
    end
  end
  if count == 0 or (count < RUNS and #runs < ALL_RUNS) then
    return 0
  end
  return first
end

-- enterRun enters units in the run that ends last before them.
local function enterRun(charge, scopes, slot, cost)
  local best, count
  count = 0
  for _, run in ipairs(charge.runs) do
    if run.scopes == scopes then
      count = count + 1
      if run.last <= slot and (not best or run.last > best.last) then
        best = run
      end
    end
  end
  if not best then
    best = openRun(charge.id, charge.kind, scopes, count, charge.now)
    charge.runs[#charge.runs + 1], charge.covered = best, {}
  end
  local before = best.total
  best.known = {}
  best.kind.append(best, slot, cost)
  best.fresh = best.fresh or best.size == 0
  best.size = best.size + 1
  best.last = slot
  if before + cost >= MODULUS then
    -- The entries begin again from 0: only a later slot keeps the order.
    best.last = slot + 1
  end
  best.total = (before + cost) % MODULUS
  -- The holes' ages are counted from the end of the log.
  for _, hole in ipairs(best.holes) do
    hole.age = hole.age + cost
  end
  return best.letter .. best.number .. pack(before, cost)
end
