-- write.lua: how units are added to an account, and how what has changed of it is written.

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
    number = addToLog(account, log, slot, cost)
  else
    if not fields.from then
      fields.from, dirty.from = text(number), true
    end
    account.total = (number + cost) % MODULUS
  end
  local code = account.set.log and account.kind or 'N'
  more = table.concat(more)
  return struct.pack('>c1I7I5I1', code, number, named or cost, #more / MORE) .. more
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

-- At most so many times as much as a sweep removes a script removes of what can matter no more,
-- and that once in so many units.
local TRIMS, EVERY = 16, 4096

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
    for _, key in ipairs(ownKeysOf(account)) do
      call('PEXPIRE', key, ttl)
    end
    outlast(ttl)
    enroll('a:' .. account.id, account.ends + DAY)
  end
  list[#list + 1], list[#list + 2] = 'a:' .. account.id,
    packSummary(account) .. frontOf(account)
end

-- forgetLost begins an account anew whose logs are gone. What has left every window expires, and nothing is lost by
-- that.
local function forgetLost(account, state, seen)
  call('HDEL', base, 'a:' .. account.id)
  forgetLogs(account)
  noteLoss(state, account.now, seen)
end

-- openUnder opens an account with limits that are in force, and their edition, whether or not they were before.
local function openUnder(account, set, edition)
  local before = account.fields.limits
  account.set = set
  if before ~= edition then
    account.fields.limits, account.dirty.limits = edition, true
    account.fields.why, account.dirty.why = nil, account.fields.why ~= nil or nil
    account.asked = nil
  end
  openAccount(account)
  local _, _, old = splitEdition(before)
  if old and old ~= set.text then
    account.replaced = true
    if shape(old) ~= shape(set.text) then
      account.renewed = endOf(account)
      account.fields.renewed, account.dirty.renewed = text(account.renewed), true
    end
  end
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
  local _, _, limits = splitEdition(account.fields.limits)
  readOwnZones(account)
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
  local ids = queue and chargedBy(queue, accountID) or {}
  for i, id in ipairs(queue and #parts == #ids and ids or {}) do
    if opened[id] == nil and parts[i].cost > 0 then
      opened[id] = openOwn(id, now) or false
    end
    if opened[id] and parts[i].cost > 0 then
      takeBack(opened[id], queue, slot, parts[i])
    end
  end
end

-- findEdge finds the last slot of all again, when one was taken out.
local function findEdge(account)
  if account.kind then
    local oldest = oldestOf(account)
    account.edge = opens(viewFor(account, '-'), oldest, nil, 0, account.edge)
    if account.edge == oldest then
      account.edge, account.ends = 0, 0 -- it is empty, not lost
    end
  end
end

local function writeOpened(opened)
  for _, account in pairs(opened) do
    if account then
      if account.ahead then
        rewindQueues(account)
      end
      findEdge(account)
      lowerScores(account)
      writeNow(account)
    end
  end
end

-- announceFreed tells callers that wait which accounts have room again, and more of that: 'now', if it is since
-- units of what has left are free; or who knows it already.
local function announceFreed(opened, more)
  for id, account in pairs(opened) do
    if account then
      redis.pcall('PUBLISH', base, 'free ' .. id .. (more and ' ' .. more or ''))
    end
  end
end

-- heldKey is the key of the bookings that a holder has, and heldMember one of them.
local function heldKey(holder)
  return base .. ':held:' .. holder
end

local function heldMember(id, accountID, entry)
  return id .. ' ' .. accountID .. ' ' .. entry
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
