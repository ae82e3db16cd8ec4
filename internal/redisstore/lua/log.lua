-- log.lua: the exact log of an account, as sorted sets of units.
--
-- Units are numbered in the order in which they are booked. A booking of several is cut
-- into parts of 2^K units, of which the first one's number is a multiple of 2^K, and a
-- part is a member of the sorted set for K: its first number in 7 bytes, and its slot as
-- the score. So units can be put in and taken out anywhere, ZCOUNT counts them, and the
-- part that holds a unit is found from the unit's number alone. The sets of one log are
-- a pile: KEY has the single units, KEY:1 the parts of two, and so on.
--
-- Requests of other scopes have a log of their own, so that a limit that covers some
-- scopes counts some logs. What a limit counts is a view: sets, each with the units that a
-- member counts for, and streams, see streamlog.lua.

-- No search goes on in a script that has done as much as so many commands on small keys:
-- weight is what it has done beyond its commands.
local LONGEST, weight = 3000, 0
-- So many members are read at once where a search has come close, and twice as many each time
-- after that, up to MOST: where many were taken out of a stream as many add up to nothing.
local FEW, MOST = 16, 128
-- Of members that are read so many take as long as a command, and half as many entries of a
-- stream. To count among so many takes three times as long.
local QUICK, MANY = 3, 1000
-- What can matter no more is looked for once in so many units, and twice as much is removed.
local SWEEP = 64

-- What else a log is kept in, by the code of its algorithm: see streamlog.lua.
local kinds = {L = {}}

-- countIn returns the units behind low and up to high, or without an end, and the members of
-- each of the view; of a stream no fewer than its entries.
local function countIn(view, low, high)
  local units, counts = 0, {}
  local from, to = '(' .. text(low), high and text(high) or '+inf'
  for i, one in ipairs(view) do
    local count = one.tail and kinds.S.countIn(one, low, high) or call('ZCOUNT', one.key, from, to)
    units, counts[i] = units + one.units * count, count
    weight = weight + (count > MANY and 2 or 0)
  end
  -- What was taken out of a stream may stay for longer than what it was taken from.
  return math.max(0, units), counts
end

-- someOf returns those of a view that have any members.
local function someOf(view, counts)
  local some, left = {exact = view.exact}, {}
  for i, one in ipairs(view) do
    if counts[i] > 0 then
      some[#some + 1] = one
      left[#some] = counts[i]
    end
  end
  return some, left
end

-- advance goes on from low to where so many units are behind it, by reading some members of
-- each. It returns that slot; or nil, how far it has come, and by how many units.
local function advance(view, low, high, need, few)
  local slots, units, most = {}, {}, view.exact and math.min(few, need) or few
  -- Up to whole all is read, and up to seen no less than there is.
  local whole, seen = high, high
  local function add(slot, more)
    if not units[slot] then
      slots[#slots + 1], units[slot] = slot, 0
    end
    units[slot] = units[slot] + more
  end
  for _, one in ipairs(view) do
    local count, last
    if one.tail then
      count, last = kinds.S.each(one, low, high, most, add)
    else
      local members = call('ZRANGEBYSCORE', one.key, '(' .. text(low), text(high), 'WITHSCORES', 'LIMIT', 0, most)
      for i = 2, #members, 2 do
        add(tonumber(members[i]), one.units)
      end
      count, last = #members / 2, tonumber(members[#members])
    end
    weight = weight + count * (one.tail and 2 or 1) / QUICK
    if count == most then
      whole, seen = math.min(whole, last - 1), math.min(seen, one.units > 0 and last or last - 1)
    end
  end
  table.sort(slots)
  local come = 0
  for _, slot in ipairs(slots) do
    if slot <= seen and come + units[slot] >= need then
      return slot
    elseif slot > whole then
      break
    end
    come = come + units[slot]
  end
  return nil, whole, come
end

-- guess returns an instant between low and high up to which about so many of the units
-- may be: where it is in what has the most units, as if it were so in all.
local function guess(view, counts, low, high, part)
  local most = 1
  for i, one in ipairs(view) do
    if counts[i] * one.units > counts[most] * view[most].units then
      most = i
    end
  end
  local longest = view[most]
  if longest.tail then
    low = math.min(longest.next[low] or low, high)
    return math.floor(low + (high - low) * part)
  end
  weight = weight + (counts[most] > MANY and 4 or 0)
  local rank = call('ZCOUNT', longest.key, '-inf', text(low)) + math.floor(counts[most] * part)
  return tonumber(call('ZRANGE', longest.key, rank, rank, 'WITHSCORES')[2] or high)
end

-- opens returns the first slot not before low behind which no more than room units are
-- up to high, or without an end. last is the last slot of all.
local function opens(view, low, high, room, last)
  local units, counts = countIn(view, low, high)
  local need = units - room
  if need <= 0 then
    return low
  end
  local only = view[1]
  if not view[2] and not only.tail then
    -- All members count for the same: it is known which.
    local rank = call('ZCOUNT', only.key, '-inf', text(low)) + math.ceil(need / only.units) - 1
    return tonumber(call('ZRANGE', only.key, rank, rank, 'WITHSCORES')[2])
  end
  -- Up to high need units are behind low. Only what has some in between is looked at.
  high = high and math.min(high, last) or last
  view, counts = someOf(view, counts)
  local turn, few = 0, FEW
  while high - low > 1 do
    -- Now and then also far away, as one member may be many units.
    local near, halve = need <= FEW or units <= FEW, false
    if near or turn % 2 == 0 and #view <= FEW then
      local slot, come, by = advance(view, low, high, need, few)
      if slot then
        return slot
      end
      -- Where many are at one instant reading comes no further.
      halve = come <= low
      if not halve then
        low, need, units, few = come, need - by, units - by, math.min(2 * few, MOST)
      end
    end
    if halve or not near then
      turn = turn + 1
      -- Somewhat early, so that what is left can be read.
      local part = math.max(0, need - FEW / 2) / units
      local middle = (halve or turn % 2 == 0) and math.floor((low + high) / 2) or guess(view, counts, low, high, part)
      middle = math.max(low + 1, math.min(high - 1, middle))
      local before, some = countIn(view, low, middle)
      if before >= need then
        high, units = middle, before
      else
        low, need, units = middle, need - before, units - before
        for i, count in ipairs(some) do
          some[i] = counts[i] - count
        end
      end
      view, counts = someOf(view, some)
    end
  end
  return math.max(low, high)
end

-- covers reports whether a limit of that scope covers requests of those.
local function covers(scope, scopes)
  return scope == '-' or string.find(',' .. scopes .. ',', ',' .. scope .. ',', 1, true) ~= nil
end

-- viewFor returns what a limit of that scope counts of the logs, together: a list of sets and
-- streams.
local function viewFor(account, scope)
  local view = account.views[scope]
  if view then
    return view
  end
  view = {logs = 0, exact = true} -- none of them is subtracted
  account.views[scope] = view
  for _, log in ipairs(account.logs) do
    if covers(scope, log.scopes) then
      local used = log.piles[1].mask > 0 or log.stream and log.stream.tail.slot > 0
      view.logs = view.logs + (used and 1 or 0)
      for _, pile in ipairs(log.piles) do
        for _, set in ipairs(pile.sets) do
          view[#view + 1] = set
          view.exact = view.exact and set.units > 0
        end
      end
      view[#view + 1] = log.stream
    end
  end
  return view
end

-- openLog opens the log of requests of some scopes.
local function openLog(account, scopes)
  local name, fields = scopes == '' and account.id or account.id .. '/' .. scopes, account.fields
  local log = {name = name, scopes = scopes, piles = {}}
  if account.kind == 'S' then
    log.stream = kinds.S.open(base .. ':stream:' .. name)
    log.piles[1] = openPile(base .. ':in:' .. name, tonumber(fields['in:' .. scopes] or 0), 1)
    -- Of a stream that is gone nothing is taken out.
    local out = log.stream.tail.slot > 0 and fields['out:' .. scopes] or 0
    log.piles[2] = openPile(base .. ':out:' .. name, tonumber(out), -1)
    log.names = {'in:' .. scopes, 'out:' .. scopes}
  else
    log.piles[1] = openPile(base .. ':log:' .. name, tonumber(fields['sets:' .. scopes] or 0), 1)
    log.names = {'sets:' .. scopes}
  end
  return log
end

-- noteSets notes of which sets there are some.
local function noteSets(account, log)
  for i, pile in ipairs(log.piles) do
    local mask = pile.mask > 0 and text(pile.mask) or nil
    if account.fields[log.names[i]] ~= mask then
      account.fields[log.names[i]], account.dirty[log.names[i]] = mask, true
    end
  end
  account.views = {}
end

-- addToLog records units, and returns the number of the first.
local function addToLog(account, log, slot, cost)
  local number = account.total
  account.total = (number + cost) % MODULUS
  if log.stream then
    number = kinds.S.append(log.stream, slot, number, cost)
  end
  if not log.stream then
    addTo(log.piles[1], slot, number, cost)
  elseif not number then
    -- It is between others: these have numbers of their own, as a stream's follow each other.
    number = tonumber(account.fields.inserted or MODULUS)
    account.fields.inserted, account.dirty.inserted = text(number + cost), true
    addTo(log.piles[1], slot, number, cost)
  end
  noteSets(account, log)
  return number
end

-- logHolds reports whether a log has units at a slot.
local function logHolds(log, slot, number, units)
  if not log.stream or number >= MODULUS then
    return holds(log.piles[1], slot, number, units)
  end
  return kinds.S.has(log.stream, slot, number, units) and not holds(log.piles[2], slot, number, units)
end

-- takeFromLog takes units out of a log that holds them.
local function takeFromLog(account, log, slot, number, units)
  if not log.stream or number >= MODULUS then
    takeFrom(log.piles[1], slot, number, units)
  else
    addTo(log.piles[2], slot, number, units)
  end
  noteSets(account, log)
end

-- logUsage returns the units used of a limit, those booked ahead, and when the next is free.
local function logUsage(view, now, max, window, last)
  local units = countIn(view, now - window)
  if units == 0 then
    return 0, 0, 0
  end
  local ahead = last > now and countIn(view, now) or 0
  return units - ahead, ahead, opens(view, now - window, nil, math.min(units, max) - 1, last) + window
end
