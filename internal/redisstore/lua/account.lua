-- account.lua: a charge, which is one account with the limits that it keeps.
--
-- A booking is charged to one account of those that may be chosen, and to all
-- that are shared. What is counted and not logged is in the account's hash:
--
--   made         when the hash was: without it the account was lost
--   limits       'REVISION SET', the limits that rule
--   kind         the letter of what its log is kept in, whatever the limits say now
--   renewed      the last slot that was booked under others: what is handed back
--                up to then may not have been counted as it is now
--   free         1 if something was handed back: there may be a set of it
--   runs         the runs of its log, 'SCOPES/NUMBER ...'; none: '/0' alone
--   last:LANE    the last slot of a lane; of lane '' only beside others, or
--                where there is no log
--   units, from  where there is no log: the units booked up to now, and those
--                when the counting began (modulo MODULUS)
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
--   commit(m, slot, cost)         enters a booking
--   enter(m, slot, cost)          enters what was spent, however much it is
--   usage(m, now)                 the units used, and when the next is free or 0
--   left(m, slot)                 the units that may have left in the window that
--                                 ends then
--   trim(m, now)                  removes what can matter no more
--
-- where m is a limit: max, window, margin, extra, scope, zone; name, which no
-- other of the account has; charge; and get and put, by which it keeps numbers.
-- unusedIn(m, from, to) tells the units that were handed back and have passed
-- unused in [from, to). Instants are whole microseconds.

-- scopesOf returns the scopes of a lane.
local function scopesOf(lane)
  if lane == '' then
    return '' -- as most are
  end
  return string.match(lane, '^!?([^~]*)')
end

-- covers reports whether a limit of that scope covers requests of those.
local function covers(scope, scopes)
  return scope == '-' or string.find(',' .. scopes .. ',', ',' .. scope .. ',', 1, true) ~= nil
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

local function unusedIn(m, from, to)
  local units = 0
  for _, hole in ipairs(m.charge.passed) do
    if hole.slot >= from and hole.slot < to and hole.slot > m.charge.renewed and covers(m.scope, hole.scopes) then
      units = units + hole.cost
    end
  end
  return units
end

local PART = 14 -- of an entry: letter and number of the run, and 12 bytes

-- parse reads an entry as a booking names it, LANE, a zero, and one part for
-- each account; in the set of free ones '!' stands before those of others.
local function parse(entry)
  if #entry == 1 + PART and string.byte(entry) == 0 then
    return '', string.sub(entry, 2) -- as most are
  end
  local lane, parts = string.match(entry, '^([^%z]*)%z(.*)$')
  if not lane or #parts == 0 or #parts % PART ~= 0 then
    return nil
  end
  return lane, parts
end

local function parsePart(parts, index)
  local at = (index - 1) * PART
  local before, cost = unpackEntry(parts, at + 3)
  return string.sub(parts, at + 1, at + 1), tonumber(string.sub(parts, at + 2, at + 2)), before, cost
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

local function rename(parts, index, before, cost)
  return string.sub(parts, (index - 1) * PART + 1, (index - 1) * PART + 2) .. pack(before, cost)
end

-- readCharge reads what is known of an account.
local function readCharge(account, set, now)
  local charge = {
    id = account, set = set, now = now,
    key = base .. ':acct:' .. account,
    free = base .. ':free:' .. account,
    fields = {}, dirty = {},
    runs = {}, limits = {},
    covered = {}, -- the runs of each limit's scope, as they are asked for
    booked = 0, -- how many bookings the script has entered
    passed = {}, -- the holes whose slot has passed
    handedBack = false, -- whether there are any holes, passed or not
    first = true, -- whether its limits are those of the first revision
    renewed = 0, -- the last slot that was booked under other limits
    unsure = false, -- whether any has not passed
  }
  local flat = call('HGETALL', charge.key)
  for i = 1, #flat, 2 do
    charge.fields[flat[i]] = flat[i + 1]
  end
  charge.known = #flat > 0
  charge.renewed = tonumber(charge.fields.renewed or 0)
  return charge
end

-- noteUnsure notes whether something was handed back that has not passed.
local function noteUnsure(charge)
  charge.unsure = #call('ZREVRANGEBYSCORE', charge.free, '+inf', text(charge.now), 'LIMIT', 0, 1) > 0
end

-- openCharge reads the account's log, and what was handed back.
local function openCharge(charge)
  local now, set = charge.now, charge.set
  local entries = 0
  if set.log then
    charge.kind = charge.fields.kind or set.log
    if charge.fields.runs then
      for scopes, number in string.gmatch(charge.fields.runs, '(%S*)/(%d)') do
        local run = openRun(charge.id, charge.kind, scopes, tonumber(number), now)
        charge.runs[#charge.runs + 1] = run
        entries = entries + run.size
      end
    else
      local run = openRun(charge.id, charge.kind, '', 0, now)
      entries = run.size
      charge.runs[1] = entries > 0 and run or nil
    end
  end
  charge.empty = not charge.known or (set.log and entries == 0)
  -- Without the hash what was handed back is that of an account that was lost.
  if charge.known and charge.fields.free and call('EXISTS', charge.free) == 1 then
    charge.handedBack = true
    local named = {}
    for _, run in ipairs(charge.runs) do
      named[run.letter .. run.number .. run.scopes] = run
    end
    noteUnsure(charge)
    for _, name in ipairs(call('ZREVRANGEBYSCORE', charge.free, '(' .. text(now), '-inf', 'WITHSCORES')) do
      local hole = charge.passed[#charge.passed]
      if hole and not hole.slot then
        hole.slot = tonumber(name)
      else
        local lane, parts = parse(name)
        local letter, number, before, cost = parsePart(parts, 1)
        local scopes = scopesOf(lane)
        charge.passed[#charge.passed + 1] = {scopes = scopes, cost = cost}
        local run = named[letter .. number .. scopes]
        if run then
          unspentHole(run, before, cost)
        end
      end
    end
  end
  -- A set is of several accounts, and of several bookings: what is found out about a
  -- limit is this charge's alone.
  for i, limit in ipairs(set) do
    charge.limits[i] = setmetatable({charge = charge}, {__index = limit})
  end
end

-- covered returns the runs that a limit counts.
local function covered(charge, scope)
  if scope == '-' then
    return charge.runs
  end
  local runs = charge.covered[scope]
  if not runs then
    runs = {}
    for _, run in ipairs(charge.runs) do
      if covers(scope, run.scopes) then
        runs[#runs + 1] = run
      end
    end
    charge.covered[scope] = runs
  end
  return runs
end

-- kept returns how many units of a limit such a booking may use.
local function kept(max, keep, cost)
  if keep == 0 then
    return max
  end
  return math.max(cost, math.floor(max * (1000 - keep) / 1000))
end

-- settle returns the first slot not before from that every limit admits, and its capacity:
-- the least of theirs. What is looked at for that is bounded for all limits together.
local function settle(charges, from, lane)
  local slot, cost, quiet, count = from, lane.cost, 0, 0
  local looks = {left = LOOKS}
  local limits, capacities = {}, {}
  for _, charge in ipairs(charges) do
    slot = math.max(slot, endOfFirst(charge.runs, lane.scopes))
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
      slot, capacities[at] = earliestInLog(covered(m.charge, m.scope), slot, cost, max, m.window, looks, lane.several)
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

-- lastOf returns the slot that no booking of the lane comes before.
local function lastOf(charge, lane)
  local last = charge.fields['last:' .. lane]
  if last then
    return tonumber(last)
  end
  if lane == '' and charge.runs[1] then
    return charge.runs[1].last
  end
  return 0
end

-- endOf returns the last slot of all, or now.
local function endOf(charge)
  local last = charge.now
  for name, value in pairs(charge.fields) do
    if string.sub(name, 1, 5) == 'last:' then
      last = math.max(last, tonumber(value))
    end
  end
  for _, run in ipairs(charge.runs) do
    last = math.max(last, run.last)
  end
  return last
end

-- enterCharge enters units in the log and in all that counts them, and returns
-- their name. commit is 'commit' for a booking, 'enter' for what was spent, and nil for
-- what is entered in the log only.
local function enterCharge(charge, lane, slot, cost, commit)
  local fields, dirty = charge.fields, charge.dirty
  local alone = lane.name == '' and not fields.runs and charge.set.log
  if not alone then
    if charge.set.log and not fields['last:'] then
      fields['last:'], dirty['last:'] = text(charge.runs[1] and charge.runs[1].last or 0), true
    end
    fields['last:' .. lane.name], dirty['last:' .. lane.name] = text(slot), true
  end
  for _, m in ipairs(charge.limits) do
    if commit and counters[m.letter] and covers(m.scope, lane.scopes) then
      counters[m.letter][commit](m, slot, cost)
    end
  end
  if charge.set.log then
    if not fields.kind then
      fields.kind, dirty.kind = charge.kind, true
    end
    local part = enterRun(charge, lane.scopes, slot, cost)
    if not alone then
      local names = {}
      for i, run in ipairs(charge.runs) do
        names[i] = run.scopes .. '/' .. run.number
      end
      fields.runs, dirty.runs = table.concat(names, ' '), true
    end
    return part
  end
  local before = tonumber(fields.units)
  if not before then
    before = charge.now % MODULUS
    fields.from, dirty.from = text(before), true
  end
  fields.units, dirty.units = text((before + cost) % MODULUS), true
  return 'N0' .. pack(before, cost)
end

-- has reports whether what a part names is still counted.
local function has(charge, slot, scopes, letter, number, before, cost)
  if letter == 'N' then
    local from, units = tonumber(charge.fields.from), tonumber(charge.fields.units)
    return from and (before - from) % MODULUS + cost <= (units - from) % MODULUS
  end
  if not logs[letter] then
    return false
  end
  local run
  for _, other in ipairs(charge.runs) do
    if other.letter == letter and other.scopes == scopes and other.number == number then
      run = other
    end
  end
  run = run or openRun(charge.id, letter, scopes, number, charge.now)
  return run.size > 0 and run.kind.has(run, slot, before, cost) and run
end

-- readKnown returns up to when an account's log counts at least, and its longest window,
-- as quick.lua knows it. A script reads it once.
local function readKnown(charge)
  if charge.has == nil then
    charge.has = call('HGET', base, 'has:' .. charge.id)
  end
  if charge.has then
    return struct.unpack('>I8I8', charge.has)
  end
  return 0, 0
end

-- knownOf returns what quick.lua is to know of an account. How much room it has is for
-- quick.lua to find out.
local function knownOf(charge, ends)
  local plain = charge.fields.kind == 'L' and not charge.fields.runs and not charge.fields['last:']
  for _, limit in ipairs(charge.limits) do
    plain = plain and limit.letter == 'L' and limit.scope == '-'
  end
  local hole = charge.handedBack and tonumber(call('ZRANGE', charge.free, -1, -1, 'WITHSCORES')[2]) or 0
  if hole < charge.now - charge.set.window then
    hole = 0 -- it counts for nothing, and what it was counts for nothing
  end
  return struct.pack('>I8I8I8I8', ends, charge.set.window, 0, hole) ..
    (plain and not charge.ruled and charge.fields.limits or '')
end

-- inParts calls a command with some arguments at a time: Lua passes no more than some
-- thousands.
local function inParts(command, key, arguments)
  for i = 1, #arguments, 1000 do
    call(command, key, unpack(arguments, i, math.min(i + 999, #arguments)))
  end
end

-- keepCharge writes what has changed, and sets when the account's keys expire: never
-- before the last slot has left its window, and a day late, for clocks that step. It
-- adds to the list what the budget's hash is to have of it.
local function keepCharge(charge, list)
  local set, now = charge.set, charge.now
  local last, gone, new = endOf(charge), {}, {}
  local fresh = not charge.fields.made
  if fresh then
    charge.fields.made, charge.dirty.made = text(now), true
    call('UNLINK', charge.free)
  end
  for _, m in ipairs(charge.limits) do
    if counters[m.letter] then
      counters[m.letter].trim(m, now)
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
  local ends, window = readKnown(charge)
  fresh = fresh or last + set.window > ends or window ~= set.window
  for _, run in ipairs(charge.runs) do
    fresh = fresh or run.fresh
  end
  if fresh then
    ends = last + set.window + SLACK
  end
  local ttl = text(math.ceil((ends - now + DAY) / 1000))
  if charge.handedBack then
    call('PEXPIRE', charge.free, ttl) -- the set may be new
  end
  if fresh then
    call('PEXPIRE', charge.key, ttl)
    for _, run in ipairs(charge.runs) do
      call('PEXPIRE', run.key, ttl)
    end
    outlast(ttl)
  end
  charge.has = knownOf(charge, ends)
  list[#list + 1], list[#list + 2] = 'has:' .. charge.id, charge.has
  if fresh then
    enroll('has:' .. charge.id, ends + DAY, now)
  end
end

-- keepNow writes an account that is booked outside of book.lua.
local function keepNow(charge)
  local list = {}
  keepCharge(charge, list)
  inParts('HSET', base, list)
end

-- leftIn returns the units that may have left in the longest window up to an
-- instant.
local function leftIn(charge, instant)
  local set = charge.set
  if set.log then
    return since(charge.runs, instant - set.window) - since(charge.runs, instant)
  end
  local units = 0
  for _, m in ipairs(charge.limits) do
    units = math.max(units, counters[m.letter].left(m, instant))
  end
  return units
end

-- trimCharge removes some of what can matter no more: more than was entered.
local function trimCharge(charge)
  local now, set = charge.now, charge.set
  if charge.handedBack then
    call('ZREMRANGEBYSCORE', charge.free, '-inf', '(' .. text(now - set.window - DAY))
  end
  for _, run in ipairs(charge.runs) do
    local slot = run.kind.trim(run, now, set.window, set.largest, charge.booked)
    if slot then
      run.known = {}
    end
    if slot and charge.handedBack then
      -- A hole that is no longer in the log could be booked, and would not count.
      call('ZREMRANGEBYSCORE', charge.free, '-inf', '(' .. text(math.min(slot, now - set.window)))
    end
  end
end
