-- vacant.lua: the slots of bookings that were cancelled, in whose place nothing was booked.
--
-- They are counted in nothing, but the log and they together keep the account's limits. So
-- a booking may leave at a slot if as many units are vacant in each window around it, and
-- nothing else need be looked at. The search of the log finds what is earlier, as far as it goes.
--
-- What is booked elsewhere ends as many of the vacant units that come next, and as many of
-- those just before it: a window that has the booking and any that is left holds no more than
-- it did. Where units are recorded that may be more than the limits allow, or limits change,
-- none is left, and none is added before all of these have left the longest window.
--
-- The vacant slots of requests of some scopes are a sorted set beside their log: a member
-- is a slot and its units, in 8 bytes each.

local vacant = {}

do
  -- So many slots are looked at, first FEW of them, and before them one for each unit that is needed, of
  -- AT_ONCE at the most. A booking of more units than that ends all that are vacant in a window of it.
  local SLOTS, AT_ONCE = 1024, 64
  local FEW = 16

  -- keyOf returns the key of what is vacant in a log, or nil if nothing is.
  local function keyOf(account, log)
    return account.fields['vacant:' .. log.scopes] and base .. ':vacant:' .. log.name
  end

  local function note(account, log, some)
    local field = 'vacant:' .. log.scopes
    if (account.fields[field] ~= nil) ~= some then
      account.fields[field], account.dirty[field] = some and '1' or nil, true
    end
  end

  -- sharedLimits reports whether any limit of the account's logs covers requests of ours and
  -- of theirs, and whether all do that cover ours.
  local function sharedLimits(account, ours, theirs)
    local any, all = false, true
    for _, m in ipairs(account.limits) do
      if kinds[m.code] and covers(m.scope, ours) then
        local both = covers(m.scope, theirs)
        any, all = any or both, all and both
      end
    end
    return any, all
  end

  -- slotsNear reads so many vacant slots of a log that come next from a slot on, and if more than
  -- one is needed those just before it, in order. It returns the place of the first that is not
  -- before the slot as well.
  local function slotsNear(key, from, window, need, most)
    local near, first = {}, 1
    local function add(members, begins, ends, step)
      for i = begins, ends, step do
        local slot, units = struct.unpack('>I8I8', members[i])
        near[#near + 1] = {slot = slot, units = units}
      end
    end
    if need > 1 then
      local before = call('ZREVRANGEBYSCORE', key, '(' .. text(from), '(' .. text(from - window), 'LIMIT', 0,
        math.min(need, AT_ONCE))
      add(before, #before, 1, -1)
      first = #near + 1
    end
    local behind = call('ZRANGEBYSCORE', key, text(from), '+inf', 'LIMIT', 0, most)
    add(behind, 1, #behind, 1)
    return near, first
  end

  -- reach returns how far from a vacant slot so many units are vacant, or the window.
  local function reach(near, i, step, need, window)
    local slot, units = near[i].slot, 0
    while near[i] do
      units = units + near[i].units
      if units >= need then
        return math.abs(near[i].slot - slot)
      end
      i = i + step
    end
    return window
  end

  -- firstFit reads vacant slots as slotsNear does, and returns the place of the first with so many vacant units
  -- in each window around it, or behind all, and that of the first that was looked at.
  local function firstFit(key, from, window, need, most)
    local near, first = slotsNear(key, from, window, need, most)
    local i = first
    while near[i] and reach(near, i, -1, need, window) + reach(near, i, 1, need, window) >= window do
      i = i + 1
    end
    work = work + #near / QUICK
    return near, i, first
  end

  -- vacant.next returns the first vacant slot not before from with so many vacant units in each
  -- window around it, and how many of them can be booked there.
  function vacant.next(m, from, queue, cost, need)
    local account, window, first, capacity = m.account, m.window, nil, nil
    if account.replaced then
      return nil
    end
    for _, log in ipairs(account.logs) do
      local key = keyOf(account, log)
      local _, all = false, false
      if key then
        _, all = sharedLimits(account, queue.scopes, log.scopes)
      end
      if all then
        local most = FEW + math.min(need, AT_ONCE)
        local near, i, begins = firstFit(key, from, window, need, most)
        while not near[i] and #near - begins + 1 == most and most < SLOTS do
          most = math.min(4 * most, SLOTS)
          near, i, begins = firstFit(key, from, window, need, most)
        end
        if near[i] and (not first or near[i].slot < first) then
          first, capacity = near[i].slot, math.max(cost, near[i].units - need + cost)
        end
      end
    end
    return first, capacity
  end

  -- take takes units from vacant slots, in their order, and returns how many it found.
  local function take(key, members, units)
    local taken = 0
    for _, member in ipairs(members) do
      local slot, there = struct.unpack('>I8I8', member)
      local part = math.min(there, units - taken)
      if part > 0 and part < there then -- before the other goes, and the key and its expiry with it
        call('ZADD', key, text(slot), struct.pack('>I8I8', slot, there - part))
      end
      if part > 0 then
        call('ZREM', key, member)
      end
      taken = taken + part
    end
    return taken
  end

  -- vacant.fill ends what is vacant in favour of units that were booked at a slot.
  function vacant.fill(account, queue, slot, units)
    local some = {}
    for _, log in ipairs(account.logs) do
      local key = keyOf(account, log)
      if key then
        call('ZREMRANGEBYSCORE', key, '-inf', '(' .. text(account.now))
        local any, all = sharedLimits(account, queue.scopes, log.scopes)
        some[#some + 1] = {log = log, key = key, any = any}
        if all then
          units = units - take(key, call('ZRANGEBYSCORE', key, text(slot), text(slot)), units)
        end
      end
    end
    local low, high = '(' .. text(slot - account.set.window), '(' .. text(slot + account.set.window)
    for _, each in ipairs(some) do
      local key = each.key
      if each.any and units > AT_ONCE then
        call('ZREMRANGEBYSCORE', key, low, high)
      elseif each.any and units > 0 then
        take(key, call('ZRANGEBYSCORE', key, text(slot), high, 'LIMIT', 0, units), units)
        take(key, call('ZREVRANGEBYSCORE', key, '(' .. text(slot), low, 'LIMIT', 0, units), units)
      end
      note(account, each.log, call('EXISTS', key) == 1)
    end
  end

  -- vacant.add notes that units were cancelled at a slot.
  function vacant.add(account, log, slot, units)
    if slot < account.now or slot < tonumber(account.fields.exceeded or 0) + account.set.window then
      return
    end
    local key = base .. ':vacant:' .. log.name
    local member = call('ZRANGEBYSCORE', key, text(slot), text(slot))[1]
    if member then
      call('ZREM', key, member)
      units = units + struct.unpack('>I8', member, 9)
    end
    call('ZADD', key, text(slot), struct.pack('>I8I8', slot, units))
    call('PEXPIRE', key, text(math.ceil((math.max(account.ends, slot) - account.now + DAY) / 1000)))
    note(account, log, true)
  end

  -- drop ends what is vacant from a score on.
  local function drop(account, from)
    for _, log in ipairs(account.logs) do
      local key = keyOf(account, log)
      if key then
        call('ZREMRANGEBYSCORE', key, from, '+inf')
        note(account, log, call('EXISTS', key) == 1)
      end
    end
  end

  -- vacant.trim ends what is vacant behind the last slot of all: there all is found.
  function vacant.trim(account)
    drop(account, '(' .. text(account.edge))
  end

  -- vacant.forget ends all that is vacant. Up to that slot windows may hold more than the limits
  -- allow.
  function vacant.forget(account, slot)
    drop(account, '-inf')
    account.fields.exceeded = text(math.max(slot, tonumber(account.fields.exceeded or 0)))
    account.dirty.exceeded = true
  end
end
