-- account.lua: an account as a script reads, changes and writes it, with its limits.
--
-- A booking is charged to one account of those that may be chosen, and to all
-- that are shared. What changes with every booking is its summary, the field a:ACCOUNT of
-- KEYS[1]: numbers of 8 bytes each, doubles as those of the field state (common.lua),
--
--   ends    up to when the account counts at least; its keys expire a day later
--   total   the number of the next unit: see log.lua
--   edge    the last slot of all
--   last    the slot that no booking of queue '' comes before
--   front   see front.lua
--
-- The rest is in the account's hash:
--
--   made         when the hash was: without it the account was lost
--   limits       'REVISION SET', the limits that rule
--   kind         the code of what its log is kept in, whatever the limits say now
--   known        after a loss, what workers knew of all units: record.lua
--   again        there if units were recorded again: record.lua
--   renewed      the last slot that was booked under others: what is cancelled
--                up to then may not have been counted as it is now
--   logs         the scopes of its logs, each with a ';'; none: that of '' alone
--   sets:SCOPES  of which sets a log has some; of a stream in:SCOPES and out:SCOPES
--   vacant:SCOPES  there if slots of its requests are vacant: vacant.lua
--   exceeded    the last slot up to which windows may hold more than the limits allow
--   inserted     the number of the next unit that is between others of a stream
--   last:QUEUE   the slot that no booking of another queue comes before
--   from         where there is no log: the number of the first unit
--   zone:NAME    a time zone of its limits, as readZones reads it
--   label        what people call the account: label.lua
--   index:NAME   the account's member in an index that has a score of it
--   NAME:...     what the algorithm of a limit keeps, see counters
--
-- Callers of one queue leave in the order in which they book. Its name is '' or
-- 'SCOPES~RESERVE~ID,...', the scopes of the requests, what they keep back in
-- thousandths, and the shared accounts.
--
-- The table counters has, by the code of an algorithm that keeps no log:
--
--   earliest(m, from, cost, max)  the first slot not before from at which no more
--                                 than max are counted with the booking in it; and the
--                                 capacity: how many units can be booked at that slot
--                                 before a booking of this cost must wait longer. nil if
--                                 that is not known: for this booking only
--   commit(m, slot, cost)         records a booking, and returns what cancel is to know of
--                                 it beside its slot and cost: 29 bytes, or nil
--   cancel(m, slot, cost, known)  takes it back
--   record(m, slot, cost)         records what was spent, however much it is
--   usage(m, now)                 the units used, those booked ahead beside them, and when the
--                                 next is free or 0
--   left(m, slot)                 the units that may have left in the window that
--                                 ends then
--   trim(m, now)                  removes what can matter no more
--   front(m)                      a code, and the numbers that front.lua is to know; nil
--                                 if it must not book
--
-- and, where the algorithm needs it,
--
--   remembers                     whether commit returns something for cancel
--   mostAtOnce(limit)             the largest cost, if that is not max
--   namedByExtra                  whether the count begins anew if extra changes
--   ownKey(m)                     the key of what it keeps beside the account's hash
--   drained(m, from, to)          the units that stopped counting between two instants
--   reset(m, now, at, within)     corrects the end of the window under way: reset.lua
--
-- where m is a limit: max, window, margin, extra, scope, zone; name, which no
-- other of the account has; account; and get and put, by which it keeps numbers.
-- Instants are whole microseconds.

-- scopesOf returns the scopes of a queue.
local function scopesOf(queue)
  return string.match(queue, '^[^~]*')
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
  return tonumber(m.account.fields[m.name .. name])
end

-- put keeps a number, or nothing.
local function put(m, name, number)
  local account = m.account
  name = m.name .. name
  account.fields[name] = number and text(number)
  account.dirty[name] = true
end

-- keptOf returns what is kept of a limit: a list of names, without the limit's own, and values.
local function keptOf(m)
  local kept, length = {}, #m.name
  for name, value in pairs(m.account.fields) do
    if string.sub(name, 1, length) == m.name then
      kept[#kept + 1] = {name = string.sub(name, length + 1), value = value}
    end
  end
  return kept
end

-- At most so many times as much as a sweep removes a script removes of what can matter no more,
-- and that once in so many units.
local TRIMS, EVERY = 16, 4096

-- What an entry has of an account: the code of what it is kept in, 'N' if in no log; the
-- number of its first unit in 7 bytes; its units in 5; and of how many limits there is
-- something more to know, in 1, and that.
local PART, MORE = 14, 29

-- parse reads an entry as a booking names it: QUEUE, a zero, and a part for each account.
local function parse(entry)
  local queue, rest = string.match(entry, '^([^%z]*)%z(.*)$')
  local parts, at = {}, 1
  while queue and at + PART - 1 <= #rest do
    local code, number, cost, more = struct.unpack('>c1I7I5I1', rest, at)
    at = at + PART + more * MORE
    parts[#parts + 1] = {
      code = code, number = number, cost = cost,
      more = string.sub(rest, at - more * MORE, at - 1),
    }
  end
  if not parts[1] or at ~= #rest + 1 then
    return nil
  end
  return queue, parts
end

-- sharedIn returns the shared accounts of a queue.
local function sharedIn(queue)
  local ids = {}
  for id in string.gmatch(string.match(queue, '~[^~]*~(.*)$') or '', '[^,]+') do
    ids[#ids + 1] = id
  end
  return ids
end

-- partOf returns the place of an account's part in an entry of that queue.
local function partOf(queue, accountID)
  for i, id in ipairs(sharedIn(queue)) do
    if id == accountID then
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
local function takeFront(account, summary)
  local p1, p2, p3, _, _, _, _, _, code, width, at = struct.unpack(FRONT, summary, 33)
  account.digest = string.sub(summary, at, at + width - 1)
  local window, _, _, extra, zone =
    string.match(string.sub(summary, at + width), '^' .. ALONE .. '%d+ %d+ (%d+) (%d+) (%u) (%d+) %S+ (%S+)')
  local function take(name, number)
    account.fields[name], account.dirty[name] = number and text(number), true
  end
  local name = {code == '*' and 'F' or code, window, code == 'U' and extra or 0, '-', zone}
  name = table.concat(name, '/') .. ':'
  if code == 'G' then
    take(name .. 'at', p1)
    take(name .. 'part', p2)
  elseif code == 'L' then
    account.ordered = p3
  elseif p2 == 0 or code == 'S' then
    return
  elseif code == 'U' then
    local length = tonumber(extra) * 32
    name = name .. text((p1 - p1 % length) / length)
    local block = account.fields[name] or ''
    if #block > 0 and struct.unpack('>I7', block, #block - 13) == p1 then
      block = string.sub(block, 1, #block - 14)
    end
    account.fields[name], account.dirty[name] = block .. struct.pack('>I7I7', p1, p2), true
  else
    account.windowOfFront = true
    name = name .. text(p1)
    take(name, p2)
    if code == 'W' then
      take(name .. '<', p3)
    elseif code == '*' then
      take(name .. '<', account.edge)
      take(name .. '^', p3)
    end
  end
end

-- readAccount reads what is known of an account.
local function readAccount(accountID, set, now)
  local account = {
    id = accountID, set = set, now = now,
    key = base .. ':acct:' .. accountID,
    fields = {}, dirty = {},
    logs = {}, limits = {},
    views = {}, -- what each limit's scope counts, as it is asked for
    booked = 0, -- how many units the script has recorded
    ends = 0, total = now % MODULUS, edge = 0, last = 0,
  }
  local flat = call('HGETALL', account.key)
  for i = 1, #flat, 2 do
    account.fields[flat[i]] = flat[i + 1]
  end
  account.renewed = tonumber(account.fields.renewed or 0)
  local summary = call('HGET', base, 'a:' .. accountID)
  account.ordered = not summary and account.total
  if summary then
    account.ends, account.total, account.edge, account.last = struct.unpack(SUMMARY, summary)
    -- Of an account that was lost it counts for nothing.
    if #summary > 32 and account.fields.made then
      takeFront(account, summary)
    end
  end
  account.opened = account.total
  return account
end

-- oldestOf returns the instant before which nothing matters: what has left the window, and for
-- as long as a clock may be late.
local function oldestOf(account)
  return account.now - account.set.window - math.min(account.set.window, LATER)
end

-- keysOf returns the keys of the account's logs.
local function keysOf(account)
  local keys = {}
  for _, log in ipairs(account.logs) do
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
local function logOf(account, scopes)
  for _, log in ipairs(account.logs) do
    if log.scopes == scopes then
      return log
    end
  end
  return nil
end

-- openAccount opens the account's logs.
local function openAccount(account)
  local fields = account.fields
  if account.set.log then
    account.kind = fields.kind or account.set.log
    for scopes in string.gmatch(fields.logs or ';', '([^;]*);') do
      account.logs[#account.logs + 1] = openLog(account, scopes)
    end
  end
  -- A set is of several accounts, and of several bookings: what is found out about a
  -- limit is this account's alone.
  for i, limit in ipairs(account.set) do
    account.limits[i] = setmetatable({account = account}, {__index = limit})
  end
end

-- What was recorded again after a loss is in a hash: a slot and a part, as its entry has them.
local AGAIN = '>I8c1I7I5'

local function againKey(account)
  return base .. ':again:' .. account.id
end

-- forgetLogs begins the logs of an account anew.
local function forgetLogs(account)
  account.ends, account.edge, account.last, account.views = 0, 0, 0, {}
  vacant.forget(account, account.now)
  if account.fields.again then
    call('UNLINK', againKey(account))
    account.fields.again, account.dirty.again = nil, true
  end
  for i, log in ipairs(account.logs) do
    if log.stream then
      call('UNLINK', log.stream.key)
    end
    for _, name in ipairs(log.names) do
      account.fields[name], account.dirty[name] = nil, true
    end
    account.logs[i] = openLog(account, log.scopes)
  end
end

-- isLost reports whether nothing is there of what counts.
local function isLost(account)
  if account.ends <= account.now or not account.fields.made then
    return account.ends > account.now
  end
  local keys = keysOf(account)
  return keys[1] ~= nil and call('EXISTS', unpack(keys)) == 0
end

-- kept returns how many units of a limit such a booking may use.
local function kept(max, reserve, cost)
  return reserve == 0 and max or math.max(cost, math.floor(max * (1000 - reserve) / 1000))
end

-- settle returns the first slot not before from that every limit admits, and its capacity:
-- the least of theirs. How often logs are searched for that is bounded for all limits
-- together.
local function settle(accounts, from, queue)
  local slot, cost, quiet, count = from, queue.cost, 0, 0
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
    local max, earlier = kept(m.max, queue.reserve, cost), slot
    if counters[m.code] then
      slot, capacities[at] = counters[m.code].earliest(m, slot, cost, max)
    else
      slot, capacities[at] = earliestInLog(m, slot, max, queue, searches)
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
local function scoredFrom(account, last)
  return math.max(last, account.now - math.min(account.set.shortest, LATER))
end

-- lastOf returns the slot that no booking of the queue comes before.
local function lastOf(account, queue)
  if queue == '' then
    return account.last
  end
  return tonumber(account.fields['last:' .. queue] or 0)
end

local function setLast(account, queue, slot)
  if queue == '' then
    account.last = slot
  else
    account.fields['last:' .. queue], account.dirty['last:' .. queue] = text(slot), true
  end
end

-- addUnits records units in the log and in all that counts them, and returns
-- what an entry has of them, or of so many of them. commit is 'commit' for a booking,
-- 'record' for what was spent, and nil for what is recorded in the log only.
local function addUnits(account, queue, slot, cost, commit, named)
  local fields, dirty, number = account.fields, account.dirty, account.total
  account.ordered = slot >= account.edge and account.ordered
  setLast(account, queue.name, math.max(slot, lastOf(account, queue.name)))
  account.edge = math.max(account.edge, slot)
  account.booked = account.booked + cost
  local more = {}
  for _, m in ipairs(account.limits) do
    if commit and counters[m.code] and covers(m.scope, queue.scopes) then
      more[#more + 1] = counters[m.code][commit](m, slot, cost)
    end
  end
  if account.set.log then
    if not fields.kind then
      fields.kind, dirty.kind = account.kind, true
    end
    local log = logOf(account, queue.scopes)
    if not log then
      fields.logs, dirty.logs = (fields.logs or ';') .. queue.scopes .. ';', true
      log = openLog(account, queue.scopes)
      account.logs[#account.logs + 1] = log
    end
    if commit == 'commit' then
      vacant.fill(account, queue, slot, cost)
    else
      vacant.forget(account, slot)
    end
    number = addToLog(account, log, slot, cost)
  else
    if not fields.from then
      fields.from, dirty.from = text(number), true
    end
    account.total = (number + cost) % MODULUS
  end
  local code = account.set.log and account.kind or 'N'
  return struct.pack('>c1I7I5I1', code, number, named or cost, #more) .. table.concat(more)
end

-- counts reports whether the units of an entry's part are still counted.
local function counts(account, queue, slot, part)
  if part.code == 'N' then
    local from = tonumber(account.fields.from)
    local given = from and (account.total - from) % MODULUS
    return from and not account.set.log and (part.number - from) % MODULUS + part.cost <= given
  end
  local log = logOf(account, scopesOf(queue))
  return part.code == account.kind and log and logHolds(log, slot, part.number, part.cost)
end

-- countedAs returns the part under which the units of an entry's part are counted, or nil. They have
-- another number if they were recorded again.
local function countedAs(account, queue, slot, part)
  if counts(account, queue, slot, part) then
    return part
  end
  local other = account.fields.again and
    call('HGET', againKey(account), struct.pack(AGAIN, slot, part.code, part.number, part.cost))
  local _, parts = parse('\0' .. (other or ''))
  return parts and counts(account, queue, slot, parts[1]) and parts[1] or nil
end

-- noteAgain notes under which part the units of an entry's part were recorded again.
local function noteAgain(account, slot, part, other)
  call('HSET', againKey(account), struct.pack(AGAIN, slot, part.code, part.number, part.cost), other)
  account.fields.again, account.dirty.again, account.fresh = '1', true, true
end

-- lowerScores makes sure that no index has a later score of the account than its queue's
-- next slot.
local function lowerScores(account)
  for field, member in pairs(account.fields) do
    local name = string.match(field, '^index:(.*)$')
    local index = name and base .. ':pool:' .. name
    if index then
      local last = lastOf(account, string.match(name, ':(.*)$') or '')
      local score = call('ZSCORE', index, member)
      if not score then
        account.fields[field], account.dirty[field] = nil, true
      elseif tonumber(score) > last then
        call('ZADD', index, text(last), member)
      end
    end
  end
end

-- takeBack takes a part of an entry back, if it is still counted.
local function takeBack(account, queue, slot, part)
  part = countedAs(account, queue, slot, part)
  if not part then
    return
  end
  local scopes, at = scopesOf(queue), 1
  if part.code ~= 'N' then
    local log = logOf(account, scopes)
    account.ordered = nil
    takeFromLog(account, log, slot, part.number, part.cost)
    vacant.add(account, log, slot, part.cost)
  end
  for _, m in ipairs(account.limits) do
    if counters[m.code] and covers(m.scope, scopes) and slot > account.renewed then
      local known = counters[m.code].remembers and string.sub(part.more, at, at + MORE - 1)
      counters[m.code].cancel(m, slot, part.cost, known)
      at = at + (known and MORE or 0)
    end
  end
  account.ahead = account.ahead or slot >= account.now
end

-- rewindQueues lets who books next come before those that wait, where there is room.
local function rewindQueues(account)
  for field, last in pairs(account.fields) do
    local name = string.match(field, '^last:(.*)$')
    if name and tonumber(last) > account.now then
      setLast(account, name, account.now)
    end
  end
  account.last = math.min(account.last, account.now)
end

-- inParts calls a command with some arguments at a time: Lua passes no more than some
-- thousands.
local function inParts(command, key, arguments)
  for i = 1, #arguments, 1000 do
    call(command, key, unpack(arguments, i, math.min(i + 999, #arguments)))
  end
end

-- endOf returns the last slot of all, or now.
local function endOf(account)
  local last = math.max(account.now, account.edge, account.last)
  for name, value in pairs(account.fields) do
    if string.sub(name, 1, 5) == 'last:' then
      last = math.max(last, tonumber(value))
    end
  end
  return last
end

-- frontOf returns what front.lua goes by, or '' if it must leave the account alone.
local function frontOf(account)
  local fields, set, m = account.fields, account.set, account.limits[1]
  local limits = string.match(fields.limits or '', '^%d+ (.*)$')
  if limits ~= set.text or fields.logs or fields['vacant:'] or
    (set.log or 'L') ~= (fields.kind or 'L') then
    return ''
  end
  for i, other in ipairs(account.limits) do
    if other.scope ~= '-' or other.code ~= m.code or i > 1 and not set.log then
      return ''
    end
  end
  local code, numbers = m.code, nil
  if set.log then
    local view, room = viewFor(account, '-'), math.huge
    for _, limit in ipairs(account.limits) do
      room = math.min(room, limit.max - countIn(view, math.max(account.edge, account.last) - limit.window))
    end
    local only = not account.limits[2] and m.max or 0
    room = math.max(0, account.total + room)
    local log = account.logs[1]
    if not log.stream then
      numbers = {room, log.piles[1].mask, account.ordered or account.total, 0, only}
    elseif log.stream.tail.slot > 0 then
      local tail = log.stream.tail
      local clean = log.piles[1].mask + log.piles[2].mask == 0 and 1 or 0
      numbers = {room, tail.number + tail.units, tail.slot, clean, only}
    end
  elseif counters[code].front then
    code, numbers = counters[code].front(m)
  end
  if not numbers then
    return ''
  end
  for i = 1, 7 do
    numbers[i] = numbers[i] or 0
  end
  local digest = account.digest or ''
  if not fields['index:' .. digest] then
    digest = ''
  end
  numbers[8], numbers[9], numbers[10] = set.window, code, #digest
  return struct.pack(FRONT, unpack(numbers)) .. digest .. ALONE .. fields.limits
end

-- writeAccount writes what has changed, and sets when the account's keys expire: never
-- before the last slot has left its window, and a day late, for clocks that step. It
-- adds to the list what the budget's hash is to have of it.
local function writeAccount(account, list)
  local set, now, gone, new = account.set, account.now, {}, {}
  local fresh = not account.fields.made or account.fresh
  if not account.fields.made then
    account.fields.made, account.dirty.made = text(now), true
  end
  local before = oldestOf(account)
  -- front.lua leaves a booking to this once in so many units, and the sets of parts with it.
  local all = account.opened % EVERY + account.booked >= EVERY
  local trims = all and TRIMS or math.min(TRIMS, math.floor((account.opened % SWEEP + account.booked) / SWEEP))
  for _, log in ipairs(account.logs) do
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
  for _, m in ipairs(account.limits) do
    if counters[m.code] and account.booked > 0 then
      counters[m.code].trim(m, now)
    end
    local zone, name = zones[m.zone], 'zone:' .. m.zone
    if zone and account.fields[name] ~= zone.text then
      account.fields[name], account.dirty[name] = zone.text, true
    end
  end
  for name in pairs(account.dirty) do
    local value = account.fields[name]
    if value then
      new[#new + 1], new[#new + 2] = name, value
    else
      gone[#gone + 1] = name
    end
  end
  account.dirty = {}
  inParts('HSET', account.key, new)
  inParts('HDEL', account.key, gone)
  local last = endOf(account)
  if account.edge > 0 and last + set.window > account.ends then
    -- Keys outlive some 40 more units. Each time that a queue is longer, front.lua leaves it to
    -- this to say anew when they expire, and a queue of few units a window is soon long.
    local more = math.max(SLACK, set.window / 4, math.min(DAY, 40 * set.window / set.largest))
    account.ends, fresh = math.floor(last + set.window + more), true
  end
  if fresh then
    local ttl = text(math.ceil((math.max(account.ends, last + set.window) - now + DAY) / 1000))
    call('PEXPIRE', account.key, ttl)
    for _, key in ipairs(keysOf(account)) do
      call('PEXPIRE', key, ttl)
    end
    if account.fields.again then
      call('PEXPIRE', againKey(account), ttl)
    end
    for _, m in ipairs(account.limits) do
      if counters[m.code] and counters[m.code].ownKey then
        call('PEXPIRE', counters[m.code].ownKey(m), ttl)
      end
    end
    outlast(ttl)
    enroll('a:' .. account.id, account.ends + DAY)
  end
  list[#list + 1], list[#list + 2] = 'a:' .. account.id,
    struct.pack(SUMMARY, account.ends, account.total, account.edge, account.last) .. frontOf(account)
end

-- writeNow writes an account outside of book.lua.
local function writeNow(account)
  local list = {}
  writeAccount(account, list)
  inParts('HSET', base, list)
end

-- openOwn opens an account with the limits and zones that it keeps, or returns nil.
local function openOwn(id, now)
  local account = readAccount(id, nil, now)
  local _, limits = string.match(account.fields.limits or '', '^(%d+) (.*)$')
  for field, zone in pairs(account.fields) do
    local name = string.match(field, '^zone:(.*)$')
    zones[name or ''] = zones[name or ''] or (name and readZone(zone))
  end
  account.set = limits and limitset(limits)
  local read = not bad
  bad = nil
  if account.set and read and (not account.fields.kind or kinds[account.fields.kind]) then
    openAccount(account)
    return account
  end
  return nil
end

-- cancelEntry takes a booking back from all accounts that were charged. They are opened
-- once, and writeOpened writes them.
local function cancelEntry(opened, entry, accountID, slot, now)
  local queue, parts = parse(entry)
  local ids = queue and sharedIn(queue) or {}
  table.insert(ids, 1, accountID)
  for i, id in ipairs(queue and #parts == #ids and ids or {}) do
    if opened[id] == nil then
      opened[id] = openOwn(id, now) or false
    end
    if opened[id] then
      takeBack(opened[id], queue, slot, parts[i])
    end
  end
  if slot >= now then
    call('HDEL', base .. ':apart', '*last')
  end
end

local function writeOpened(opened)
  for _, account in pairs(opened) do
    if account then
      if account.ahead then
        rewindQueues(account)
      end
      if account.kind then
        local oldest = oldestOf(account)
        account.edge = opens(viewFor(account, '-'), oldest, nil, 0, account.edge)
        if account.edge == oldest then
          account.edge, account.ends = 0, 0 -- it is empty, not lost
        end
        vacant.trim(account)
      end
      lowerScores(account)
      writeNow(account)
    end
  end
end

-- leftIn returns the units that may have left in the longest window up to an
-- instant.
local function leftIn(account, instant)
  local set = account.set
  if set.log then
    return (countIn(viewFor(account, '-'), instant - set.window, instant))
  end
  local units = 0
  for _, m in ipairs(account.limits) do
    units = math.max(units, counters[m.code].left(m, instant))
  end
  return units
end
