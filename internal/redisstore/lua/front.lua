-- front.lua: answers most bookings of book.lua, before anything of that is even defined.
--
-- A script spends more time on the definition of functions, and on calls of them, than a
-- booking takes. So this is straight-line code, without any, and with few calls of math's: a - a % b
-- is b * math.floor(a / b). It goes by the
-- account's summary alone, and where that is not enough it leaves, has written nothing,
-- and the rest goes on. What it answers is what the rest would have answered. The
-- arguments and the reply are those of book.lua.
--
-- It books for queue '' from the first account of an index or a single one, behind all that
-- is booked, where one algorithm counts and nothing special is under way. Once in a while
-- it leaves all the same, so that what is old is removed and keys do not expire.
--
-- Where a line says --> NAME stand the sections of that name of the algorithms that the limits have, one file
-- for each: scripts.go puts them there. They know the names of this file. A section whose booking is for the
-- rest sets leaves, or leaves s nil where a slot is looked for:
--
--   log    names the log
--   slot   finds a slot (s) for c units, not before from, and how many bookings may leave at it (alike)
--   left   keeps the window that a booking leaves behind in the account's hash
--   count  counts the bookings in p1 to p4, which layout.lua explains
--   check  sees whether the logs are there that are to be written
--   write  writes them, and removes what is old
--   entry  makes the record (one) of bookings of one slot

repeat
  -- What is global is looked for by its name each time.
  local call, struct, string, math, ARGV = redis.call, struct, string, math, ARGV
  local base, asked, session, rules = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
  if #asked < 89 or #session ~= 18 then
    break
  end
  local number, _, now, reckoned, before, recovered, found, knownCard, lead, kind, count, cost, longest =
    struct.unpack('>I8I8I8I8I8I8I8I8I8c1I2I6I8', asked)
  local most = 4503599627370496
  -- Of bookings that may wait differently long this is the least: those it refuses are for the rest.
  local differs = kind == 'D'
  if not differs and kind ~= 'U' or #asked ~= 89 + (differs and 8 * count or 0) or
    count < 1 or count > 1024 or cost < 1 or found ~= 0 or
    now > most or reckoned > most or before > most or recovered > most or longest > most or lead > most then
    break
  end
  local index, digest, row, firstSet, accountID, set, member
  local least, mark = 1, nil -- of how many units the index has the slots, and as a summary names that
  local newestField -- that of the account of the index which was booked last
  if string.byte(rules) == 32 then
    -- '  1 0 0 0  REVISION VERSION SET', or the summary does not end with it.
    accountID = #ARGV == 4 and ARGV[4]
  else
    -- 'DIGEST*UNITS  SETS 0 0 0  REVISION VERSION SET': only such an index is answered here.
    local units, sets
    digest, units, sets, firstSet = string.match(rules, '^(%x+)%*(%d+)  (%d+) 0 0 0  (%d.*)$')
    if digest and #ARGV == 2 + sets and cost >= units + 0 then
      least, mark = units + 0, '*' .. units
      index, newestField = base .. ':pool:' .. digest .. mark, 'i:' .. digest .. mark
      mark = mark .. '*'
      row = call('ZRANGE', index, 0, count, 'WITHSCORES')
      accountID = row[1] and string.match(row[1], '^%d+:(.+)$')
    end
  end
  if not accountID then
    break
  end
  local field = 'a:' .. accountID
  local known = index and call('HMGET', base, session, field, 'state', newestField) or
    call('HMGET', base, session, field, 'state')
  local record, summary, state, newest = known[1], known[2], known[3], known[4]
  if not record or not state or index and not newest or struct.unpack('>I8', record) >= number then
    break
  end
  newest = index and string.sub(newest, 9)
  local seen, version, lost, graceEnds, pausesEnd, offset, card = struct.unpack(STATE, state)
  local given = now > 0
  if not given then
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  now = now + offset
  -- As in book.lua, but a clock that has stepped is for that.
  if now < seen then
    if now < seen - 1000000 or (given and reckoned == 0) then
      break
    end
    now = seen
  end
  if now > seen + 1000000 or (reckoned > 0 and now > reckoned + 1000000) or
    (before > 0 and (seen < before or lost > recovered)) or now < graceEnds or card ~= knownCard then
    break
  end
  local paused = now < pausesEnd
  if paused and (tonumber(call('HGET', base .. ':apart', '**over') or 0) > now or
    tonumber(call('ZSCORE', base .. ':pauses', '*') or 0) > now) then
    break
  end
  local done, late, changes = 0, false, nil
  state = struct.pack(STATE, now, version, lost, graceEnds, pausesEnd, offset, card)
  -- The answer so far.
  record = struct.pack('>c16I8I8I8I8', asked, now, version, 0, 0)
  -- Of an index: the accounts that were booked, their scores and the least of these; the place in
  -- the row of the first account that was not; the score whose members stand in the row in turn;
  -- and whether the row ends before those do.
  local members, scores, summaries, lowest, at, turned, short, place, scored
  if index then
    members, scores, summaries, lowest, changes, at = {}, {}, {[accountID] = summary}, math.huge, {}, 1
  end
  repeat -- for one account after the other
    local bound = math.huge
    if index then
      -- As in book.lua: the lowest score is the next one's, and equal scores go round a ring.
      local other, first = tonumber(row[at + 1]), nil
      if other and other <= lowest and row[at + 1] ~= turned then
        turned = row[at + 1]
        if row[at] <= newest and row[at + 3] == turned then
          local stop, split = at, at
          while row[stop + 1] == turned do
            if row[stop] <= newest then
              split = stop + 2
            end
            stop = stop + 2
          end
          if stop > #row and #row > 2 * count then
            -- More of them may follow.
            if at > 1 then
              break
            end
            local low, high = 0, call('ZCOUNT', index, '-inf', turned)
            local behind = high
            while low < high do
              local middle = (low + high - (low + high) % 2) / 2
              if call('ZRANGE', index, middle, middle)[1] <= newest then
                low = middle + 1
              else
                high = middle
              end
            end
            if low < behind then
              row, short = call('ZRANGE', index, low, math.min(behind - 1, low + count), 'WITHSCORES'), true
            end
          elseif split < stop then
            local some = {unpack(row, at, split - 1)}
            for i = split, stop - 1 do
              row[at + i - split] = row[i]
            end
            for j = 1, #some do
              row[at + stop - split - 1 + j] = some[j]
            end
          end
        end
      end
      if not other and short then
        break
      end
      if not other or lowest <= other then
        for i = 1, #members do
          if scores[i] == lowest and (not first or
            (members[i] > newest) == (members[first] > newest) and members[i] < members[first] or
            members[i] > newest and members[first] <= newest) then
            first = i
          end
        end
        if other == lowest and ((row[at] > newest) == (members[first] > newest) and row[at] < members[first] or
          row[at] > newest and members[first] <= newest) then
          first = nil
        end
      end
      if first then
        member, scored, place = members[first], lowest, first
        for i = 1, #members do
          if i ~= first and (not other or scores[i] < other) then
            other = scores[i]
          end
        end
      elseif other then
        member, scored, place, other = row[at], other, nil, tonumber(row[at + 3]) or short and other
        if lowest < math.huge and (not other or lowest < other) then
          other = lowest
        end
      else
        break
      end
      bound = math.max(now + lead, other or bound)
      set, accountID = string.match(member, '^(%d+):(.+)$')
      summary = summaries[accountID] or call('HGET', base, 'a:' .. accountID)
      rules = '  1 0 0 0  ' .. (set == '1' and firstSet or ARGV[2 + set] or '')
    end
    if not summary or #summary <= WHOLE_BYTES then
      break
    end
    local ends, total, edge, last, p1, p2, p3, p4, max, margin, window, span, code, width, told, tail =
      struct.unpack(WHOLE, summary)
    local from = now + lead
    if last > from then
      from = last
    end
    -- So many are booked in this turn; in an index the score is the slot of one more.
    local turn, wanted = count, count
    if index then
      turn, wanted = 1, 2
    end
    local units = turn * cost
    local rulesAt = tail + width + told
    if #summary ~= rulesAt + #rules - 1 or not string.find(summary, rules, rulesAt, true) or
      from < edge or ends <= now or
      (index and string.sub(summary, tail, tail + #digest - 1) ~= digest) or
      (index and not string.find(summary, mark, tail + #digest, true)) or
      (paused and (tonumber(call('HGET', base .. ':apart', accountID .. '*over') or 0) > now or
        tonumber(call('ZSCORE', base .. ':pauses', accountID) or 0) > now)) or
      -- What is used up to this instant may have been told before.
      (now == seen and from == now) or total > 4503599627370000 then
      break
    end
    -- Seldom the rest removes what is old, and tells what is used.
    if number % 256 == 0 or total % 4096 + units >= 4096 then
      break
    end
    -- The limits in force, and what names the account in a record, with them where the booking is told.
    local inForce = told > 0 and string.sub(summary, tail + width, rulesAt - 1) or rules
    local charged = told > 0 and accountID .. inForce or accountID
    -- The key of the log, where one counts; how often what is old is removed from it; and whether all is
    -- left to the rest.
    local log, trims, leaves = nil, 0, false
    --> log
    if leaves then
      break
    end

    -- The slots that were found, how many leave at each, and what an algorithm notes of them (more):
    -- three of each group of bookings; and whether the log is known to be there.
    local groups, more, n, final, score, there = nil, '', 0, edge, nil, place or not log
    local i, ranks = 1, nil
    while i <= wanted do
      -- From the i-th on that many leave at one slot.
      local c, s, key, alike = cost, nil, nil, 1
      -- The window of the slot (key), or the time that the bookings take.
      local begins, beginsPart, stops, stopsPart
      if i > turn then
        c = least
      end
      --> slot
      if i > turn then
        score = s
        break
      end
      alike = i < turn and math.max(1, math.min(math.floor(alike), turn - i + 1)) or 1
      if not s or s > bound or s + span > ends or s > 9007199254740992 then
        break
      end
      if longest < 4503599627370496 and s - now > longest then
        if differs then
          break
        end
        late, final = true, s
        break
      end
      if key and key ~= p1 and p2 > 0 then
        -- The window that is left is the hash's again.
        local hash = base .. ':acct:' .. accountID
        if call('EXISTS', hash) == 0 then
          break
        end
        --> left
      end
      --> count
      if not groups then
        groups = {s, alike, more}
      elseif s == from and more == '' then
        groups[#groups - 1] = groups[#groups - 1] + alike
      else
        local behind = #groups
        groups[behind + 1], groups[behind + 2], groups[behind + 3] = s, alike, more
      end
      n, from, final, i = n + alike, s, s, i + alike
    end
    if n == 0 and not late or index and not (score or late and final == scored) then
      break
    end

    -- The units of a log by the key of their set, or nil.
    local parts
    --> check
    if leaves then
      break
    end

    -- Only now is anything written.
    --> write
    -- Those that leave at one slot are one record, but for what each has of its own.
    local records, unit = n > 0 and #groups > 3 and {record}, total
    for g = 1, n > 0 and #groups or 0, 3 do
      local slot, alike, one = groups[g], groups[g + 1], records and '' or record
      more = groups[g + 2]
      if not log then
        one = struct.pack('>c0c1I2I8I7I2I2I2c0c2I7I5Bc0', one, 'B', alike, slot, unit, #accountID, told,
          15 + #more, charged, '\0N', unit, cost, #more > 0 and 1 or 0, more)
      end
      --> entry
      unit = unit + alike * cost
      if not records then
        record = one
      elseif alike > 0 then
        records[#records + 1] = one
      end
    end
    record = records and table.concat(records) or record
    done = done + n
    if n > 0 then
      summary = struct.pack(CHANGED, ends, total + n * cost, from, from, p1, p2, p3, p4,
        string.sub(summary, CHANGED_BYTES + 1))
      if index then
        summaries[accountID], changes[#changes + 1], changes[#changes + 2] = summary, 'a:' .. accountID, summary
      end
    end
    if late then
      record = struct.pack('>c0c1I2I8I7I2I2I2c0', record, 'L', count - done, final, 0, #accountID, told, 0, charged)
      done = count
    elseif index then
      if not place then
        place, at = #members + 1, at + 2
        members[place] = member
      end
      newest = member
      if scores[place] == lowest and score > lowest then
        lowest = math.huge
        scores[place] = score
        for j = 1, #members do
          lowest = scores[j] < lowest and scores[j] or lowest
        end
      else
        scores[place], lowest = score, score < lowest and score or lowest
      end
    end
  until not index or done >= count or #members >= 64
  if done > 0 then
    if index then
      for j = 1, #members do
        row[2 * j - 1], row[2 * j] = string.format('%d', scores[j]), members[j]
      end
      changes[#changes + 1], changes[#changes + 2] = newestField, struct.pack('>dc0', now, newest)
      if members[1] then
        call('ZADD', index, unpack(row, 1, 2 * #members))
      end
      call('HSET', base, session, record, 'state', state, unpack(changes))
    else
      call('HSET', base, session, record, 'state', state, field, summary)
    end
    return record
  end
until true
