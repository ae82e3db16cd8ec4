-- account.lua: an account as a script reads, changes and writes it, with its limits.
--
-- A booking is charged to one account of those that may be chosen, and to all
-- that are shared. What changes with every booking is its summary: layout.lua. The rest is in the
-- account's hash:
--
--   made         when the hash was: without it the account was lost
--   limits       'REVISION VERSION SET', the limits that rule
--   why          why they do: card.lua
--   kind         the code of what its log is kept in, whatever the limits say now
--   known        after a loss, what workers knew of all units: record.lua
--   again        there if units were recorded again: record.lua
--   back         how many of its units were taken back
--   renewed      the last slot that was booked under others: what is cancelled
--                up to then may not have been counted as it is now
--   logs         the scopes of its logs, each with a ';'; none: that of '' alone
--   sets:SCOPES  of which sets a log has some; of a stream in:SCOPES and out:SCOPES
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
-- thousandths, and the shared accounts, or '*UNIT' for a meter: an account ACCOUNT_UNIT beside each of a list.
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
--   split(m, known, units)        if commit returns something: what cancel is to know of so many
--                                 of the units, and then of the others
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
    readSummary(summary, account)
    -- Of an account that was lost it counts for nothing.
    if #summary > SUMMARY_BYTES and account.fields.made then
      takeFront(account, summary)
    end
  end
  account.opened = account.total
  return account
end

-- readOwnZones reads the zones that the account keeps for its limits, beside those of the arguments.
local function readOwnZones(account)
  for field, zone in pairs(account.fields) do
    local name = string.match(field, '^zone:(.*)$')
    zones[name or ''] = zones[name or ''] or (name and readZone(zone))
  end
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

-- ownKeysOf returns the keys of what the account's limits keep beside its hash and its logs.
local function ownKeysOf(account)
  local keys = {}
  for _, m in ipairs(account.limits) do
    keys[#keys + 1] = counters[m.code] and counters[m.code].ownKey and counters[m.code].ownKey(m)
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

-- isLost reports whether nothing is there of what counts. Limits that have just become those of a log have none yet.
local function isLost(account)
  if account.ends <= account.now or not account.fields.made then
    return account.ends > account.now
  end
  local keys = account.fields.kind and keysOf(account) or {}
  return keys[1] ~= nil and call('EXISTS', unpack(keys)) == 0
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
