-- quick.lua: answers most bookings, before all else of book.lua is even read.
--
-- It enters bookings where nothing but the sorted sets of their accounts decides: no
-- scopes, shares kept back or shared accounts, no pause of theirs, no loss or step of the
-- clock, limits that are those of the account and all counted by a SlidingLog. In
-- all other cases it has written nothing, and book.lua goes on: the answers of
-- both are the same. ARGV and what is returned are those of book.lua.
--
-- What it has to know of an account is one field of KEYS[1], has:ACCOUNT:
--
--   until   8 bytes, up to when the account's log counts at least; its keys
--           expire a day later
--   window  8 bytes, the longest
--   room    8 bytes: while the units booked are no more, no limit makes a slot
--           wait that is not before the last; 0 if that is not known
--   hole    8 bytes, the last slot that was handed back; 0 if none is free
--   limits  'REVISION SET', the limits that rule; '' if book.lua is to decide
--
-- So a booking of a quota that is not spent reads the clock, one hash and the end
-- of the log, and writes the log and that hash.

local function quick()
  local head, members = ARGV[1], ARGV[3]
  if ARGV[5] ~= '' or ARGV[7] ~= '0' or #head ~= 64 or #members < 17 or
    not string.find(ARGV[9] or '', ' L 0 ', 1, true) or string.find(ARGV[4], ' ', 1, true) then
    return nil
  end
  local now, reckoned, before, mended, found, keep, seq = struct.unpack('>I8I8I8I8I8I8I8', head)
  local sets = tonumber(ARGV[8])
  if keep ~= 0 or found ~= 0 or math.max(now, reckoned, before, mended) > 4503599627370496 or
    not sets or ARGV[9 + sets] ~= '0' then
    return nil
  end
  -- The parts of ARGV[3], {kind, count, cost, longest, place of the longest waits}.
  local parts, many, place = {}, 0, 1
  while place + 16 <= #members do
    local kind, count, cost, longest = struct.unpack('>c1I2I6I8', members, place)
    place, many = place + 17, many + count
    parts[#parts + 1] = {kind = kind, count = count, cost = cost, longest = longest, place = place}
    if kind == 'D' then
      place = place + 8 * count
    elseif kind ~= 'U' then
      return nil
    end
    if cost < 1 or count < 1 or longest > 4503599627370496 then
      return nil
    end
  end
  if place ~= #members + 1 or many > 1024 then
    return nil
  end

  local call, base = redis.call, KEYS[1]
  local index, front, rank
  if ARGV[4] == '' then
    front = {ARGV[10 + sets]}
  elseif not ARGV[10 + sets] then
    index = base .. ':pool:' .. ARGV[4]
    front, rank = call('ZRANGE', index, 0, 1, 'WITHSCORES'), 2
  end
  local account = front and string.match(front[1] or '', '^%d+:(.+)$')
  if not account then
    return nil
  end
  local state = call('HMGET', base, 'version', 'offset', 'seen', 'careful', 'lost', 'silent',
    's:' .. ARGV[2], 'has:' .. account)
  if not (state[1] and state[3] and state[7]) or struct.unpack('>I8', state[7]) >= seq then
    return nil
  end

  local seen, given = tonumber(state[3]), now > 0
  if not given then
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  now = now + (state[2] or 0)
  if now < seen then
    if now < seen - 1000000 or (given and reckoned == 0) then
      return nil
    end
    now = seen
  end
  if (reckoned > 0 and now > reckoned + 1000000) or
    (before > 0 and (seen < before or tonumber(state[5] or 0) > mended)) or
    now < tonumber(state[4] or 0) then
    return nil
  end
  local silent = now < tonumber(state[6] or 0) -- some account is
  if silent and tonumber(call('ZSCORE', base .. ':pauses', '*') or 0) > now then
    return nil
  end
  local instant = string.format('%.0f', now)

  -- open returns what there is to know of an account: the units booked up to now
  -- (total) and up to its last entry in Redis (logged), that entry (tail) and the units
  -- before it, the slot that none comes before, and the entries to be made, {slot, before,
  -- cost}.
  local function open(member, has)
    local number, id = string.match(member, '^(%d+):(.+)$')
    if not has or #has < 33 or string.sub(has, 33) ~= ARGV[6] .. ' ' .. (ARGV[8 + number] or '') then
      return nil
    end
    local a = {member = member, id = id, has = has, key = base .. ':log:' .. id, entries = {}}
    a.ends, a.window, a.room, a.hole = struct.unpack('>I8I8I8I8', has)
    -- A slot that was handed back and has not come is for book.lua.
    if a.hole >= now then
      return nil
    end
    local tail = call('ZRANGE', a.key, -1, -1, 'WITHSCORES')
    if not tail[1] or (silent and tonumber(call('ZSCORE', base .. ':pauses', id) or 0) > now) then
      return nil
    end
    local units, cost = struct.unpack('>I7I5', tail[1])
    a.total, a.last, a.weight = units + cost, tonumber(tail[2]), cost
    a.tail, a.before = tail[1], units
    -- Far from where the units begin again from 0.
    if a.total > 3000000000000000 then
      return nil
    end
    a.logged, a.slot = a.total, math.max(now, a.last)
    return a
  end

  local function readLimits(a)
    if not a.limits then
      a.limits, a.largest = {}, 0
      for most, length, margin in string.gmatch(string.sub(a.has, 33), '(%d+) (%d+) (%d+) L 0 %- %-') do
        a.limits[#a.limits + 1] = {max = tonumber(most), window = length + margin}
        a.largest = math.max(a.largest, tonumber(most))
      end
    end
    return #a.limits > 0
  end

  -- readHoles reads what was handed back of an account and has passed: it was booked and
  -- counts for nothing. What has left the window before is not read, nor missed. It
  -- reports false if book.lua is to decide.
  local function readHoles(a)
    if a.hole == 0 or a.read then
      return true
    end
    local names = call('ZREVRANGEBYSCORE', base .. ':free:' .. a.id, '(' .. instant,
      string.format('%.0f', now - a.window), 'LIMIT', 0, 256)
    if #names == 256 then
      return false
    end
    local holes, sum = {}, 0
    for i, name in ipairs(names) do
      if #name ~= 15 or string.sub(name, 1, 3) ~= '\0L0' then
        return false
      end
      local from, cost = struct.unpack('>I7I5', name, 4)
      sum = sum + cost
      holes[i] = {at = a.logged - (a.logged - from) % 4503599627370496, sum = sum}
    end
    a.holes, a.read = holes[1] and holes, true
    return true
  end

  -- unspent returns how many units of those booked behind so many were handed back.
  local function unspent(a, behind)
    local holes = a.holes
    if not holes then
      return 0
    end
    local low, high = 1, #holes
    while low <= high do
      local middle = math.floor((low + high) / 2)
      if holes[middle].at >= behind then
        low = middle + 1
      else
        high = middle - 1
      end
    end
    return high > 0 and holes[high].sum or 0
  end

  -- age returns the units booked since an entry begins: in the log they begin again
  -- from 0 where they do not fit into 52 bits.
  local function age(a, entry)
    return (a.total - struct.unpack('>I7', entry)) % 4503599627370496
  end

  -- Of bookings that each wait for another entry the next one's is most often the next:
  -- limit.near has some, as the units booked up to the end of each and its slot;
  -- limit.begins are those up to the first of them.
  local function gather(a, limit, entries)
    for i = 1, #entries, 2 do
      local units, cost = struct.unpack('>I7I5', entries[i])
      local ends = a.total - (a.total - units) % 4503599627370496 + cost
      if i == 1 then
        limit.begins = ends - cost
      end
      entries[i], entries[i + 1] = ends, tonumber(entries[i + 1])
    end
    limit.near, limit.at = entries, 1
  end

  -- gathered returns the slot of the entry among limit.near that the unit behind so many is
  -- in, and the units booked up to its end.
  local function gathered(limit, bound)
    local near, at = limit.near, limit.at
    while near[at] and near[at] < bound do
      at = at + 2
    end
    limit.at = at
    if near[at] and (near[at - 2] or limit.begins) < bound then
      return near[at + 1], near[at]
    end
    return nil
  end

  -- newest returns the slot of the newest entry that, with all since it, is more
  -- than need units, and the units booked up to its end, and those behind it that were
  -- handed back. So many units wait behind those that it is asked for.
  local function newest(a, limit, need, waiting)
    if a.total - a.logged > need then
      for i = #a.entries, 1, -1 do
        local entry = a.entries[i]
        if a.total - entry.before > need then
          return entry.slot, entry.before + entry.cost
        end
      end
    end
    local bound, slot, behind = a.total - need, nil, nil
    if limit.near then
      slot, behind = gathered(limit, bound)
    end
    -- Who came last waits, most often for an entry a window before: the next one is
    -- there, or soon behind. If it is before that this limit makes nobody wait.
    local from = limit.near and limit.near[#limit.near] or (a.last > now and a.last - limit.window)
    if not slot and from and from ~= limit.from and not a.holes then
      local first = not limit.near
      limit.from = from
      gather(a, limit, call('ZRANGEBYSCORE', a.key, string.format('%.0f', from), '+inf', 'WITHSCORES',
        'LIMIT', 0, math.min(64, 3 + math.floor(waiting / a.weight))))
      if first and limit.begins >= bound then
        limit.near, limit.from = nil, nil
        return nil
      end
      slot, behind = gathered(limit, bound)
    end
    if slot then
      return slot, behind
    end
    a.size = a.size or call('ZCARD', a.key)
    -- What is known: of the entry behind high, and of the one at low, the units
    -- since. The first guess is right if all entries are like the last.
    local low, high = 0, a.size - 1
    local more, less = nil, a.total - a.logged
    local at, looks = math.max(0, high - math.floor((need - less) / a.weight)), 0
    while low <= high do
      local entry = call('ZRANGE', a.key, at, at, 'WITHSCORES')
      local since, of = age(a, entry[1]), struct.unpack('>I5', entry[1], 8)
      local ends, passed = a.total - since + of, 0
      if a.holes then
        local all = unspent(a, ends - of)
        passed = unspent(a, ends)
        since, of = since - all, of - all + passed
      end
      if since <= need then
        high, less = at - 1, since
      elseif since - of <= need then
        if waiting > 0 and not a.holes then
          gather(a, limit, call('ZRANGE', a.key, at + 1, at + math.min(63, 1 + math.floor(waiting / of)), 'WITHSCORES'))
        end
        return tonumber(entry[2]), ends + passed
      else
        low, more = at + 1, since - of
      end
      looks = looks + 1
      if looks > 6 or low > high then
        at = math.floor((low + high) / 2)
      elseif more then
        at = low + math.floor((high - low) * (more - need) / (more - less))
      else
        at = high - math.floor((need - less) * (a.size - high - 1) / less)
      end
      at = math.max(low, math.min(high, at))
    end
    return nil
  end

  -- settle returns the first slot not before from for such a cost, and the room that
  -- there is from then on.
  local function settle(a, cost, from, waiting)
    local slot, wide = from, math.huge
    for _, limit in ipairs(a.limits) do
      limit.binds, limit.behind = newest(a, limit, limit.max - cost, waiting)
      if limit.binds then
        slot = math.max(slot, limit.binds + limit.window)
      end
    end
    local only = not a.limits[2] and a.limits[1]
    if only and only.binds and only.binds + only.window == slot then
      return slot, only.behind + only.max
    end
    -- Who waits leaves no room but what the limit that binds has, and if nobody comes
    -- after it that need not be known better.
    local enough = slot > from and waiting == 0
    for _, limit in ipairs(a.limits) do
      local left = limit.behind
      if enough then
        left = left or a.total + cost - limit.max
      elseif not left or limit.binds + limit.window < slot then
        -- What has left the window by then.
        local opens = '(' .. string.format('%.0f', slot - limit.window)
        local first = call('ZRANGEBYSCORE', a.key, opens, '+inf', 'LIMIT', 0, 1)[1]
        left = first and a.total - age(a, first)
        left = left and left + unspent(a, left)
        for i = 1, left and 0 or #a.entries do
          if a.entries[i].slot > slot - limit.window then
            left = a.entries[i].before
            break
          end
        end
        left = left or a.total
      end
      wide = math.min(wide, left + limit.max)
    end
    return slot, wide
  end

  -- The bookings that are not answered yet: those of a part but for the first done,
  -- and of all behind it.
  local part, done, answers = 1, 0, {}
  local single -- the answer to bookings that each have a slot of their own, if it is the last
  local function tell()
    if single then
      local count = #single.slots
      local id = single.of.id
      answers[#answers + 1] = struct.pack('>c1I2I8I7I2I2I2', 'S', count, 0, single.before, #id, 0, 8 * count) .. id ..
        struct.pack('>' .. string.rep('I8', count), unpack(single.slots))
      single = nil
    end
  end
  local function answer(a, kind, count, slot)
    done = done + count
    if kind == 'B' and count == 1 then
      if single and single.of == a and #single.slots < 64 then
        single.slots[#single.slots + 1] = slot
        return
      end
      tell()
      single = {of = a, before = a.total, slots = {slot}}
      return
    end
    tell()
    answers[#answers + 1] = struct.pack('>c1I2I8I7I2I2I2', kind, count, slot, a.total, #a.id, 0, 0) .. a.id
  end

  -- serve answers bookings from an account, as long as no other one can be earlier,
  -- which is not before the instant bound. It reports false if book.lua is to decide;
  -- what was answered before stands.
  local function serve(a, bound)
    local settled, settledAt, slot, wide
    while parts[part] do
      local of = parts[part]
      local cost = of.cost
      while done < of.count do
        if a.total + cost <= a.room then
          slot, wide, settled = a.slot, a.room, nil
        elseif settled ~= cost or settledAt ~= a.total then
          if not readLimits(a) or not readHoles(a) then
            return false
          end
          for _, limit in ipairs(a.limits) do
            if cost > limit.max then
              return false
            end
          end
          -- In an index other accounts have the next slots.
          slot, wide = settle(a, cost, a.slot, index and 0 or (of.count - done - 1) * cost)
          settled, settledAt = cost, a.total
        end
        -- Beyond 2^53 an instant is not exact.
        if slot > 9007199254740992 then
          return false
        end
        if slot > bound then
          a.soonest = slot
          if cost == 1 then
            a.score, a.scored = slot, a.total
          end
          return true
        end
        local fit, patience = math.min(of.count - done, math.floor((wide - a.total) / cost)), of.longest
        if of.kind == 'D' and slot - now > patience then
          -- Each has a longest wait of its own; the least of them is too short.
          fit, patience = 1, struct.unpack('>I8', members, of.place + done * 8)
        end
        if patience < 4503599627370496 and slot - now > patience then
          answer(a, 'L', of.kind == 'U' and of.count - done or fit, slot)
        else
          answer(a, 'B', fit, slot)
          -- Those that leave at one slot are one entry.
          local entry = a.entries[#a.entries]
          if entry and entry.slot == slot then
            entry.cost = entry.cost + fit * cost
          else
            a.entries[#a.entries + 1] = {slot = slot, before = a.total, cost = fit * cost}
          end
          a.total, a.slot, a.room = a.total + fit * cost, slot, wide
        end
      end
      part, done = part + 1, 0
    end
    return true
  end

  -- score returns what the index is to have: a slot that the account's next booking
  -- does not come before, as book.lua has it; nil if that is to find it.
  local function score(a)
    local from = #a.entries > 0 and a.slot or a.last
    if a.total < a.room then
      return from
    elseif not readLimits(a) or not readHoles(a) then
      return nil
    end
    return (settle(a, 1, from, 0))
  end

  local accounts = {}
  if not index then
    local a = open(front[1], state[8])
    if not a or (not serve(a, math.huge) and #answers == 0 and not single) then
      return nil
    end
    accounts[1] = a
  else
    -- The accounts that were looked at, and those of the index behind them, are asked
    -- in the order of their soonest slots, for bookings of one cost.
    local has, at, all = state[8], 1, parts
    parts = {parts[1]}
    while parts[part] do
      local best
      for _, a in ipairs(accounts) do
        if not best or a.soonest < best.soonest then
          best = a
        end
      end
      local following = tonumber(front[at + 1])
      if following and (not best or following < best.soonest) then
        best = #accounts < 32 and
          open(front[at], has or call('HGET', base, 'has:' .. string.match(front[at], '^%d+:(.+)$')))
        if not best then
          break
        end
        accounts[#accounts + 1], has, at = best, nil, at + 2
        if at > #front then
          front, at = call('ZRANGE', index, rank, rank + 15, 'WITHSCORES'), 1
          rank = rank + 16
        end
        following = tonumber(front[at + 1])
      end
      -- Of accounts that are free at one instant the one in front is asked.
      local bound, behind = following or math.huge, false
      for _, a in ipairs(accounts) do
        if a == best then
          behind = true
        else
          bound = math.min(bound, behind and a.soonest or a.soonest - 1)
        end
      end
      bound = math.max(now, bound)
      if not best or not serve(best, bound) then
        break
      end
      if not best.score or best.scored ~= best.total then
        best.score, best.scored = score(best), best.total
        if not best.score then
          return nil
        end
      end
      best.soonest = math.max(best.score, best.soonest or 0)
    end
    parts = all
  end
  tell()
  if #answers == 0 then
    return nil
  end

  -- Only now is anything written.
  local used = 0
  local set = {'seen', instant, 's:' .. ARGV[2], ''}
  for _, a in ipairs(accounts) do
    -- What leaves at the last entry's slot becomes a part of it: those who wait for one
    -- entry would otherwise be one for each script, and cut the log finer with every window.
    -- Nothing of the last entry was handed back, or that would be a hole that has not come.
    local first = a.entries[1]
    if first and first.slot == a.last then
      first.before, first.cost, a.joined = a.before, a.weight + first.cost, true
    end
    for _, entry in ipairs(a.entries) do
      if entry.cost > 1099511627775 then
        return nil
      end
    end
    a.score = a.score or (index and score(a))
    if index and not a.score then
      return nil
    end
  end
  for _, a in ipairs(accounts) do
    local ttl
    if #a.entries > 0 then
      local add = {}
      for i, entry in ipairs(a.entries) do
        add[2 * i - 1] = entry.slot -- Redis spells out a number with all its digits
        add[2 * i] = struct.pack('>I7I5', entry.before, entry.cost)
      end
      call('ZADD', a.key, unpack(add))
      if a.joined then
        call('ZREM', a.key, a.tail) -- not before: a log without entries loses its expiry
      end
      -- Once in a while is enough: about every 64 entries, if all are like the last.
      local often = math.floor(a.total / a.weight / 64) > math.floor(a.logged / a.weight / 64)
      if #accounts == 1 and (often or seen < now - 10000 or seen == now) then
        local opens = '(' .. string.format('%.0f', now - a.window)
        local left = call('ZRANGEBYSCORE', a.key, opens, '+inf', 'LIMIT', 0, 1)[1]
        local ahead = call('ZRANGEBYSCORE', a.key, '(' .. instant, '+inf', 'LIMIT', 0, 1)[1]
        used = age(a, left) - (ahead and age(a, ahead) or 0)
      end
      local entry = often and call('ZRANGE', a.key, 63, 63, 'WITHSCORES')
      local old = entry and tonumber(entry[2])
      if old and old < now - a.window and readLimits(a) and (old < now - a.window - 86400000000 or
        age(a, entry[1]) - struct.unpack('>I5', entry[1], 8) >= a.largest) then
        call('ZREMRANGEBYRANK', a.key, 0, 63)
        if a.hole > 0 then
          call('ZREMRANGEBYSCORE', base .. ':free:' .. a.id, '-inf', '(' .. string.format('%.0f', old))
        end
      end
      if a.slot + a.window > a.ends then
        a.ends = a.slot + a.window + 3600000000
        ttl = string.format('%.0f', math.ceil((a.ends - now + 86400000000) / 1000))
        call('PEXPIRE', a.key, ttl)
        call('PEXPIRE', base .. ':acct:' .. a.id, ttl)
        if a.hole > 0 then
          call('PEXPIRE', base .. ':free:' .. a.id, ttl)
        end
        if call('PTTL', base) < tonumber(ttl) then
          call('PEXPIRE', base, ttl)
          call('PEXPIRE', base .. ':fields', ttl)
        end
        if index then
          call('PEXPIRE', index, '86400000')
        end
      end
      if a.limits or ttl then
        set[#set + 1] = 'has:' .. a.id
        set[#set + 1] = struct.pack('>I8I8I8I8', a.ends, a.window, a.room, a.hole) .. string.sub(a.has, 33)
      end
    end
    if index then
      call('ZADD', index, string.format('%.0f', a.score), a.member)
    end
  end
  local reply = struct.pack('>I8I8I8I8', now, tonumber(state[1]), 0, used) .. table.concat(answers)
  set[4] = string.sub(head, 49, 64) .. struct.pack('>I8', now) .. reply
  call('HSET', base, unpack(set))
  return reply
end

do
  local reply = quick()
  if reply then
    return reply
  end
end
