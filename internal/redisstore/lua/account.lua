-- account.lua: a charge, which is one account with the limits that it keeps.
--
-- A booking is charged to one account of those that may be chosen, and to all
-- that are shared. What changes with every booking is its summary, the field a:ACCOUNT of
-- KEYS[1]: numbers of 8 bytes each, doubles as those of the field state (common.lua),
--
--   ends    up to when the account counts at least; its keys expire a day later
--   total   the number of the next unit: see log.lua
--   edge    the last slot of all
--   last    the slot that no booking of lane '' comes before
--   front   see front.lua
--
-- The rest is in the account's hash:
--
--   made         when the hash was: without it the account was lost
--   limits       'REVISION SET', the limits that rule
--   kind         the letter of what its log is kept in, whatever the limits say now
--   known        after a loss, what workers knew of all units: enter.lua
--   again        there if units were entered again: enter.lua
--   renewed      the last slot that was booked under others: what is cancelled
--                up to then may not have been counted as it is now
--   logs         the scopes of its logs, each with a ';'; none: that of '' alone
--   sets:SCOPES  of which sets a log has some; of a stream in:SCOPES and out:SCOPES
--   vacant:SCOPES  there if slots of its requests are vacant: vacant.lua
--   exceeded    the last slot up to which windows may hold more than the limits allow
--   inserted     the number of the next unit that is between others of a stream
--   last:LANE    the slot that no booking of another lane comes before
--   from         where there is no log: the number of the first unit
--   zone:NAME    a time zone of its limits, as readZones reads it
--   label        what people call the account: label.lua
--   index:NAME   the account's member in an index that has a score of it
--   NAME:...     what the algorithm of a limit keeps, see counters
--
-- A lane is who leave in the order in which they book: '' or
-- 'SCOPES~KEEP~ID,...', the scopes of the requests, what they keep back in
-- thousandths, and the shared accounts.
--
-- The table counters has, by the letter of an algorithm that keeps no log:
--
--   earliest(m, from, cost, max)  the first slot not before from at which no more
--                                 than max are counted with the booking in it; and the
--                                 capacity: how many units can be booked at that slot
--                                 before a booking of this cost must wait longer. nil if
--                                 that is not known: for this booking only
--   commit(m, slot, cost)         enters a booking, and returns what cancel is to know of
--                                 it beside its slot and cost: 29 bytes, or nil
--   cancel(m, slot, cost, known)  takes it back
--   enter(m, slot, cost)          enters what was spent, however much it is
--   usage(m, now)                 the units used, those booked ahead beside them, and when the
--                                 next is free or 0
--   left(m, slot)                 the units that may have left in the window that
--                                 ends then
--   trim(m, now)                  removes what can matter no more
--   front(m)                      a letter, and the numbers that front.lua is to know; nil
--                                 if it must not book
--
-- where m is a limit: max, window, margin, extra, scope, zone; name, which no
-- other of the account has; charge; and get and put, by which it keeps numbers.
-- Instants are whole microseconds.

-- scopesOf returns the scopes of a lane.
local function scopesOf(lane)
  return string.match(lane, '^[^~]*')
end

-- mostOf returns the largest cost of a request of those scopes.
local function mostOf(set, scopes)
  local most = COSTLIEST
  for _, limit in ipairs(set) do
    if covers(limit.scope, scopes) then
      most = math.min(most, limit.most)
    end
  end
  return most
end

local function get(m, name)
  return tonumber(m.charge.fields[m.name .. name])
end

-- put keeps a number, or nothing.
local function put(m, name, number)
  local charge = m.charge
  name = m.name .. name
  charge.fields[name] = number and text(number)
  charge.dirty[name] = true
end

-- keptOf returns what is kept of a limit: a list of names, without the limit's own, and values.
local function keptOf(m)
  local kept, length = {}, #m.name
  for name, value in pairs(m.charge.fields) do
    if string.sub(name, 1, length) == m.name then
      kept[#kept + 1] = {name = string.sub(name, length + 1), value = value}
    end
  end
  return kept
end

-- At most so many times as much as a sweep removes a script removes of what can matter no more,
-- and that once in so many units.
local TRIMS, EVERY = 16, 4096

-- What an entry has of an account: the letter of what it is kept in, 'N' if in no log; the
-- number of its first unit in 7 bytes; its units in 5; and of how many limits there is
-- something more to know, in 1, and that.
local PART, MORE = 14, 29

-- parse reads an entry as a booking names it: LANE, a zero, and a part for each account.
local function parse(entry)
  local lane, rest = string.match(entry, '^([^%z]*)%z(.*)$')
  local parts, at = {}, 1
  while lane and at + PART - 1 <= #rest do
    local letter, number, cost, more = struct.unpack('>c1I7I5I1', rest, at)
    at = at + PART + more * MORE
    parts[#parts + 1] = {
      letter = letter, number = number, cost = cost,
      more = string.sub(rest, at - more * MORE, at - 1),
    }
  end
  if not parts[1] or at ~= #rest + 1 then
    return nil
  end
  return lane, parts
end

-- sharedIn returns the shared accounts of a lane.
local function sharedIn(lane)
  local ids = {}
  for id in string.gmatch(string.match(lane, '~[^~]*~(.*)$') or '', '[^,]+') do
    ids[#ids + 1] = id
  end
  return ids
end

-- partOf returns the place of an account's part in an entry of that lane.
local function partOf(lane, account)
  for i, id in ipairs(sharedIn(lane)) do
    if id == account then
      return i + 1
    end
  end
  return 1
end

-- What front.lua goes by, behind the four numbers of a summary.
local FRONT = '>ddddddddc1B'
-- How ARGV[3] of book.lua begins where it has nothing but one set of limits: a single account,
-- no zone, nothing shared, nothing kept back, no scope. A summary ends with the whole of that
-- argument, its revision and limits too, so that front.lua compares all of it at once.
local ALONE = '  1 0 0 0  '

-- takeFront takes from a summary what front.lua has counted.
local function takeFront(charge, summary)
  local p1, p2, p3, _, _, _, _, _, letter, width, at = struct.unpack(FRONT, summary, 33)
  charge.digest = string.sub(summary, at, at + width - 1)
  local window, _, _, extra, zone =
    string.match(string.sub(summary, at + width), '^' .. ALONE .. '%d+ %d+ (%d+) (%d+) (%u) (%d+) %S+ (%S+)')
  local function take(name, number)
    charge.fields[name], charge.dirty[name] = number and text(number), true
  end
  local name = {letter == '*' and 'F' or letter, window, letter == 'U' and extra or 0, '-', zone}
  name = table.concat(name, '/') .. ':'
  if letter == 'G' then
    take(name .. 'at', p1)
    take(name .. 'part', p2)
  elseif letter == 'L' then
    charge.ordered = p3
  elseif p2 == 0 or letter == 'S' then
    return
  elseif letter == 'U' then
    local length = tonumber(extra) * 32
    name = name .. text((p1 - p1 % length) / length)
    local block = charge.fields[name] or ''
    if #block > 0 and struct.unpack('>I7', block, #block - 13) == p1 then
      block = string.sub(block, 1, #block - 14)
    end
    charge.fields[name], charge.dirty[name] = block .. struct.pack('>I7I7', p1, p2), true
  else
    charge.window = true
    name = name .. text(p1)
    take(name, p2)
    if letter == 'W' then
      take(name .. '<', p3)
    elseif letter == '*' then
      take(name .. '<', charge.edge)
      take(name .. '^', p3)
    end
  end
end

-- readCharge reads what is known of an account.
local function readCharge(account, set, now)
  local charge = {
    id = account, set = set, now = now,
    key = base .. ':acct:' .. account,
    fields = {}, dirty = {},
    logs = {}, limits = {},
    views = {}, -- what each limit's scope counts, as it is asked for
    booked = 0, -- how many units the script has entered
    first = true, -- whether its limits are those of the first revision
    ends = 0, total = now % MODULUS, edge = 0, last = 0,
  }
  local flat = call('HGETALL', charge.key)
  for i = 1, #flat, 2 do
    charge.fields[flat[i]] = flat[i + 1]
  end
  charge.renewed = tonumber(charge.fields.renewed or 0)
  local summary = call('HGET', base, 'a:' .. account)
  charge.ordered = not summary and charge.total
  if summary then
    charge.ends, charge.total, charge.edge, charge.last = struct.unpack(SUMMARY, summary)
    -- Of an account that was lost it counts for nothing.
    if #summary > 32 and charge.fields.made then
      takeFront(charge, summary)
    end
  end
  charge.opened = charge.total
  return charge
end

-- oldestOf returns the instant before which nothing matters: what has left the window, and for
-- as long as a clock may be late.
local function oldestOf(charge)
  return charge.now - charge.set.window - math.min(charge.set.window, LATER)
end

-- keysOf returns the keys of the account's logs.
local function keysOf(charge)
  local keys = {}
  for _, log in ipairs(charge.logs) do
    keys[#keys + 1] = log.stream and log.stream.key
    for _, pile in ipairs(log.piles) do
      for _, set in ipairs(pile.sets) do
        keys[#keys + 1] = set.key
      end
    end
  end
  return keys
end

-- logOf returns the log of requests of some scopes, or nil.
local function logOf(charge, scopes)
  for _, log in ipairs(charge.logs) do
    if log.scopes == scopes then
      return log
    end
  end
  return nil
end

-- openCharge opens the account's logs.
local function openCharge(charge)
  local fields = charge.fields
  if charge.set.log then
    charge.kind = fields.kind or charge.set.log
    for scopes in string.gmatch(fields.logs or ';', '([^;]*);') do
      charge.logs[#charge.logs + 1] = openLog(charge, scopes)
    end
  end
  -- A set is of several accounts, and of several bookings: what is found out about a
  -- limit is this charge's alone.
  for i, limit in ipairs(charge.set) do
    charge.limits[i] = setmetatable({charge = charge}, {__index = limit})
  end
end

-- What was entered again after a loss is in a hash: a slot and a part, as its entry has them.
local AGAIN = '>I8c1I7I5'

local function againKey(charge)
  return base .. ':again:' .. charge.id
end

-- forgetLogs begins the logs of an account anew.
local function forgetLogs(charge)
  charge.ends, charge.edge, charge.last, charge.views = 0, 0, 0, {}
  vacant.forget(charge, charge.now)
  if charge.fields.again then
    call('UNLINK', againKey(charge))
    charge.fields.again, charge.dirty.again = nil, true
  end
  for i, log in ipairs(charge.logs) do
    if log.stream then
      call('UNLINK', log.stream.key)
    end
    for _, name in ipairs(log.names) do
      charge.fields[name], charge.dirty[name] = nil, true
    end
    charge.logs[i] = openLog(charge, log.scopes)
  end
end

-- isLost reports whether nothing is there of what counts.
local function isLost(charge)
  if charge.ends <= charge.now or not charge.fields.made then
    return charge.ends > charge.now
  end
  local keys = keysOf(charge)
  return keys[1] ~= nil and call('EXISTS', unpack(keys)) == 0
end

-- kept returns how many units of a limit such a booking may use.
local function kept(max, keep, cost)
  return keep == 0 and max or math.max(cost, math.floor(max * (1000 - keep) / 1000))
end

-- settle returns the first slot not before from that every limit admits, and its capacity:
-- the least of theirs. How often logs are searched for that is bounded for all limits
-- together.
local function settle(charges, from, lane)
  local slot, cost, quiet, count = from, lane.cost, 0, 0
  local looks = {left = LOOKS}
  local limits, capacities = {}, {}
  for _, charge in ipairs(charges) do
    for _, limit in ipairs(charge.limits) do
      if covers(limit.scope, lane.scopes) then
        count = count + 1
        limits[count] = limit
      end
    end
  end
  local at = 1
  while quiet < count do
    local m = limits[at]
    local max, earlier = kept(m.max, lane.keep, cost), slot
    if counters[m.letter] then
      slot, capacities[at] = counters[m.letter].earliest(m, slot, cost, max)
    else
      slot, capacities[at] = earliestInLog(m, slot, max, lane, looks)
    end
    quiet = slot == earlier and quiet + 1 or 1
    at = at % count + 1
  end
  local capacity = COSTLIEST
  for i = 1, count do
    capacity = math.min(capacity, capacities[i] or cost)
  end
  return slot, capacity
end

-- scoredFrom returns the instant from which an account is scored that may book from another
-- on. All that counts for it is kept, so the score does not depend on when what is old was
-- removed.
local function scoredFrom(charge, last)
  return math.max(last, charge.now - math.min(charge.set.shortest, LATER))
end

-- lastOf returns the slot that no booking of the lane comes before.
local function lastOf(charge, lane)
  if lane == '' then
    return charge.last
  end
  return tonumber(charge.fields['last:' .. lane] or 0)
end

local function setLast(charge, lane, slot)
  if lane == '' then
    charge.last = slot
  else
    charge.fields['last:' .. lane], charge.dirty['last:' .. lane] = text(slot), true
  end
end

-- enterCharge enters units in the log and in all that counts them, and returns
-- what an entry has of them, or of so many of them. commit is 'commit' for a booking,
-- 'enter' for what was spent, and nil for what is entered in the log only.
local function enterCharge(charge, lane, slot, cost, commit, named)
  local fields, dirty, number = charge.fields, charge.dirty, charge.total
  charge.ordered = slot >= charge.edge and charge.ordered
  setLast(charge, lane.name, math.max(slot, lastOf(charge, lane.name)))
  charge.edge = math.max(charge.edge, slot)
  charge.booked = charge.booked + cost
  local more = {}
  for _, m in ipairs(charge.limits) do
    if commit and counters[m.letter] and covers(m.scope, lane.scopes) then
      more[#more + 1] = counters[m.letter][commit](m, slot, cost)
    end
  end
  if charge.set.log then
    if not fields.kind then
      fields.kind, dirty.kind = charge.kind, true
    end
    local log = logOf(charge, lane.scopes)
    if not log then
      fields.logs, dirty.logs = (fields.logs or ';') .. lane.scopes .. ';', true
      log = openLog(charge, lane.scopes)
      charge.logs[#charge.logs + 1] = log
    end
    if commit == 'commit' then
      vacant.fill(charge, lane, slot, cost)
    else
      vacant.forget(charge, slot)
    end
    number = enterLog(charge, log, slot, cost)
  else
    if not fields.from then
      fields.from, dirty.from = text(number), true
    end
    charge.total = (number + cost) % MODULUS
  end
  local letter = charge.set.log and charge.kind or 'N'
  return struct.pack('>c1I7I5I1', letter, number, named or cost, #more) .. table.concat(more)
end

-- counts reports whether the units of an entry's part are still counted.
local function counts(charge, lane, slot, part)
  if part.letter == 'N' then
    local from = tonumber(charge.fields.from)
    local given = from and (charge.total - from) % MODULUS
    return from and not charge.set.log and (part.number - from) % MODULUS + part.cost <= given
  end
  local log = logOf(charge, scopesOf(lane))
  return part.letter == charge.kind and log and logHolds(log, slot, part.number, part.cost)
end

-- countedAs returns the part under which the units of an entry's part are counted, or nil. They have
-- another number if they were entered again.
local function countedAs(charge, lane, slot, part)
  if counts(charge, lane, slot, part) then
    return part
  end
  local other = charge.fields.again and
    call('HGET', againKey(charge), struct.pack(AGAIN, slot, part.letter, part.number, part.cost))
  local _, parts = parse('\0' .. (other or ''))
  return parts and counts(charge, lane, slot, parts[1]) and parts[1] or nil
end

-- noteAgain notes under which part the units of an entry's part were entered again.
local function noteAgain(charge, slot, part, other)
  call('HSET', againKey(charge), struct.pack(AGAIN, slot, part.letter, part.number, part.cost), other)
  charge.fields.again, charge.dirty.again, charge.fresh = '1', true, true
end

-- lowerScores makes sure that no index has a later score of the account than its lane's
-- next slot.
local function lowerScores(charge)
  for field, member in pairs(charge.fields) do
    local name = string.match(field, '^index:(.*)$')
    local index = name and base .. ':pool:' .. name
    if index then
      local last = lastOf(charge, string.match(name, ':(.*)$') or '')
      local score = call('ZSCORE', index, member)
      if not score then
        charge.fields[field], charge.dirty[field] = nil, true
      elseif tonumber(score) > last then
        call('ZADD', index, text(last), member)
      end
    end
  end
end

-- takeBack takes a part of an entry back, if it is still counted.
local function takeBack(charge, lane, slot, part)
  part = countedAs(charge, lane, slot, part)
  if not part then
    return
  end
  local scopes, at = scopesOf(lane), 1
  if part.letter ~= 'N' then
    local log = logOf(charge, scopes)
    charge.ordered = nil
    takeFromLog(charge, log, slot, part.number, part.cost)
    vacant.add(charge, log, slot, part.cost)
  end
  for _, m in ipairs(charge.limits) do
    if counters[m.letter] and covers(m.scope, scopes) and slot > charge.renewed then
      local known = m.letter == 'G' and string.sub(part.more, at, at + MORE - 1)
      counters[m.letter].cancel(m, slot, part.cost, known)
      at = at + (known and MORE or 0)
    end
  end
  charge.ahead = charge.ahead or slot >= charge.now
end

-- openQueues lets who books next come before those that wait, where there is room.
local function openQueues(charge)
  for field, last in pairs(charge.fields) do
    local name = string.match(field, '^last:(.*)$')
    if name and tonumber(last) > charge.now then
      setLast(charge, name, charge.now)
    end
  end
  charge.last = math.min(charge.last, charge.now)
end

-- inParts calls a command with some arguments at a time: Lua passes no more than some
-- thousands.
local function inParts(command, key, arguments)
  for i = 1, #arguments, 1000 do
    call(command, key, unpack(arguments, i, math.min(i + 999, #arguments)))
  end
end

-- endOf returns the last slot of all, or now.
local function endOf(charge)
  local last = math.max(charge.now, charge.edge, charge.last)
  for name, value in pairs(charge.fields) do
    if string.sub(name, 1, 5) == 'last:' then
      last = math.max(last, tonumber(value))
    end
  end
  return last
end

-- frontOf returns what front.lua goes by, or '' if it must leave the account alone.
local function frontOf(charge)
  local fields, set, m = charge.fields, charge.set, charge.limits[1]
  local limits = string.match(fields.limits or '', '^%d+ (.*)$')
  if limits ~= set.text or fields.logs or fields['vacant:'] or
    (set.log or 'L') ~= (fields.kind or 'L') then
    return ''
  end
  for i, other in ipairs(charge.limits) do
    if other.scope ~= '-' or other.letter ~= m.letter or i > 1 and not set.log then
      return ''
    end
  end
  local letter, numbers = m.letter, nil
  if set.log then
    local view, room = viewFor(charge, '-'), math.huge
    for _, limit in ipairs(charge.limits) do
      room = math.min(room, limit.max - countIn(view, math.max(charge.edge, charge.last) - limit.window))
    end
    local only = not charge.limits[2] and m.max or 0
    room = math.max(0, charge.total + room)
    local log = charge.logs[1]
    if not log.stream then
      numbers = {room, log.piles[1].mask, charge.ordered or charge.total, 0, only}
    elseif log.stream.tail.slot > 0 then
      local tail = log.stream.tail
      local clean = log.piles[1].mask + log.piles[2].mask == 0 and 1 or 0
      numbers = {room, tail.number + tail.units, tail.slot, clean, only}
    end
  elseif counters[letter].front then
    letter, numbers = counters[letter].front(m)
  end
  if not numbers then
    return ''
  end
  for i = 1, 7 do
    numbers[i] = numbers[i] or 0
  end
  local digest = charge.digest or ''
  if not fields['index:' .. digest] then
    digest = ''
  end
  numbers[8], numbers[9], numbers[10] = set.window, letter, #digest
  return struct.pack(FRONT, unpack(numbers)) .. digest .. ALONE .. fields.limits
end

-- keepCharge writes what has changed, and sets when the account's keys expire: never
-- before the last slot has left its window, and a day late, for clocks that step. It
-- adds to the list what the budget's hash is to have of it.
local function keepCharge(charge, list)
  local set, now, gone, new = charge.set, charge.now, {}, {}
  local fresh = not charge.fields.made or charge.fresh
  if not charge.fields.made then
    charge.fields.made, charge.dirty.made = text(now), true
  end
  local before = oldestOf(charge)
  -- front.lua leaves a booking to this once in so many units, and the sets of parts with it.
  local all = charge.opened % EVERY + charge.booked >= EVERY
  local trims = all and TRIMS or math.min(TRIMS, math.floor((charge.opened % SWEEP + charge.booked) / SWEEP))
  for _, log in ipairs(charge.logs) do
    fresh = fresh or log.stream and log.stream.fresh
    for _, pile in ipairs(log.piles) do
      fresh = fresh or pile.fresh
      if trims > 0 then
        trimPile(pile, before, 2 * SWEEP * trims)
      end
    end
    if log.stream and trims > 0 then
      kinds.S.trim(log.stream, before)
    end
  end
  for _, m in ipairs(charge.limits) do
    if counters[m.letter] and charge.booked > 0 then
      counters[m.letter].trim(m, now)
    end
    local zone, name = zones[m.zone], 'zone:' .. m.zone
    if zone and charge.fields[name] ~= zone.text then
      charge.fields[name], charge.dirty[name] = zone.text, true
    end
  end
  for name in pairs(charge.dirty) do
    local value = charge.fields[name]
    if value then
      new[#new + 1], new[#new + 2] = name, value
    else
      gone[#gone + 1] = name
    end
  end
  charge.dirty = {}
  inParts('HSET', charge.key, new)
  inParts('HDEL', charge.key, gone)
  local last = endOf(charge)
  if charge.edge > 0 and last + set.window > charge.ends then
    -- Keys outlive some 40 more units. Each time that a queue is longer, front.lua leaves it to
    -- this to say anew when they expire, and a queue of few units a window is soon long.
    local more = math.max(SLACK, set.window / 4, math.min(DAY, 40 * set.window / set.largest))
    charge.ends, fresh = math.floor(last + set.window + more), true
  end
  if fresh then
    local ttl = text(math.ceil((math.max(charge.ends, last + set.window) - now + DAY) / 1000))
    call('PEXPIRE', charge.key, ttl)
    for _, key in ipairs(keysOf(charge)) do
      call('PEXPIRE', key, ttl)
    end
    if charge.fields.again then
      call('PEXPIRE', againKey(charge), ttl)
    end
    for _, m in ipairs(charge.limits) do
      if m.letter == 'G' then
        call('PEXPIRE', base .. ':gaps:' .. charge.id .. ':' .. m.name, ttl)
      end
    end
    outlast(ttl)
    enroll('a:' .. charge.id, charge.ends + DAY)
  end
  list[#list + 1], list[#list + 2] = 'a:' .. charge.id,
    struct.pack(SUMMARY, charge.ends, charge.total, charge.edge, charge.last) .. frontOf(charge)
end

-- keepNow writes an account outside of book.lua.
local function keepNow(charge)
  local list = {}
  keepCharge(charge, list)
  inParts('HSET', base, list)
end

-- openOwn opens an account with the limits and zones that it keeps, or returns nil.
local function openOwn(id, now)
  local charge = readCharge(id, nil, now)
  local _, limits = string.match(charge.fields.limits or '', '^(%d+) (.*)$')
  for field, zone in pairs(charge.fields) do
    local name = string.match(field, '^zone:(.*)$')
    zones[name or ''] = zones[name or ''] or (name and readZone(zone))
  end
  charge.set = limits and limitset(limits)
  local read = not bad
  bad = nil
  if charge.set and read and (not charge.fields.kind or kinds[charge.fields.kind]) then
    openCharge(charge)
    return charge
  end
  return nil
end

-- cancelEntry takes a booking back from all accounts that were charged. They are opened
-- once, and keepOpened writes them.
local function cancelEntry(opened, entry, account, slot, now)
  local lane, parts = parse(entry)
  local ids = lane and sharedIn(lane) or {}
  table.insert(ids, 1, account)
  for i, id in ipairs(lane and #parts == #ids and ids or {}) do
    if opened[id] == nil then
      opened[id] = openOwn(id, now) or false
    end
    if opened[id] then
      takeBack(opened[id], lane, slot, parts[i])
    end
  end
  if slot >= now then
    call('HDEL', base .. ':apart', '*last')
  end
end

local function keepOpened(opened)
  for _, charge in pairs(opened) do
    if charge then
      if charge.ahead then
        openQueues(charge)
      end
      if charge.kind then
        local oldest = oldestOf(charge)
        charge.edge = opens(viewFor(charge, '-'), oldest, nil, 0, charge.edge)
        if charge.edge == oldest then
          charge.edge, charge.ends = 0, 0 -- it is empty, not lost
        end
        vacant.trim(charge)
      end
      lowerScores(charge)
      keepNow(charge)
    end
  end
end

-- leftIn returns the units that may have left in the longest window up to an
-- instant.
local function leftIn(charge, instant)
  local set = charge.set
  if set.log then
    return (countIn(viewFor(charge, '-'), instant - set.window, instant))
  end
  local units = 0
  for _, m in ipairs(charge.limits) do
    units = math.max(units, counters[m.letter].left(m, instant))
  end
  return units
end
