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
-- The names of what a summary has, p1 to p4 among them, are in layout.lua.

repeat
  -- What is global is looked for by its name each time.
  local call, struct, string, math, ARGV = redis.call, struct, string, math, ARGV
  local base, asked, session, rules = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
  if #asked ~= 73 or #session ~= 18 then
    break
  end
  local number, _, now, reckoned, before, recovered, found, kind, count, cost, longest =
    struct.unpack('>I8I8I8I8I8I8I8c1I2I6I8', asked)
  local most = 4503599627370496
  if kind ~= 'U' or count < 1 or count > 1024 or cost < 1 or found ~= 0 or
    now > most or reckoned > most or before > most or recovered > most or longest > most then
    break
  end
  local index, digest, row, revision, firstSet, accountID, set, member
  local newestField -- that of the account of the index which was booked last
  if string.byte(rules) == 32 then
    -- '  1 0 0 0  REVISION SET', or the summary does not end with it.
    accountID = #ARGV == 4 and ARGV[4]
  else
    -- 'DIGEST  SETS 0 0 0  REVISION SET': only such an index is answered here.
    local sets
    digest, sets, revision, firstSet = string.match(rules, '^(%x+)  (%d+) 0 0 0  (%d+) (.*)$')
    if digest and #ARGV == 2 + sets then
      index, newestField = base .. ':pool:' .. digest, 'i:' .. digest
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
  local seen, version, lost, graceEnds, pausesEnd, offset = struct.unpack(STATE, state)
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
    (before > 0 and (seen < before or lost > recovered)) or now < graceEnds then
    break
  end
  local paused = now < pausesEnd
  if paused and tonumber(call('ZSCORE', base .. ':pauses', '*') or 0) > now then
    break
  end
  local done, late, changes = 0, false, nil
  state = struct.pack(STATE, now, version, lost, graceEnds, pausesEnd, offset)
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
      bound = math.max(now, other or bound)
      set, accountID = string.match(member, '^(%d+):(.+)$')
      summary = summaries[accountID] or call('HGET', base, 'a:' .. accountID)
      rules = '  1 0 0 0  ' .. revision .. ' ' .. (set == '1' and firstSet or ARGV[2 + set] or '')
    end
    if not summary or #summary <= WHOLE_BYTES then
      break
    end
    local ends, total, edge, last, p1, p2, p3, p4, max, margin, window, span, code, width, tail =
      struct.unpack(WHOLE, summary)
    local from = now
    if last > now then
      from = last
    end
    -- So many are booked in this turn; in an index the score is the slot of one more.
    local turn, wanted = count, count
    if index then
      turn, wanted = 1, 2
    end
    local units = turn * cost
    if #summary ~= tail + width + #rules - 1 or not string.find(summary, rules, tail + width, true) or
      from < edge or ends <= now or
      (index and string.sub(summary, tail, tail + width - 1) ~= digest) or
      (paused and tonumber(call('ZSCORE', base .. ':pauses', accountID) or 0) > now) or
      -- What is used up to this instant may have been told before.
      (now == seen and from == now) or total > 4503599627370000 then
      break
    end
    -- Once in a while what is old is removed, and seldom by the rest, which also tells
    -- what is used.
    local trims = (code == 'L' or code == 'S') and math.floor((total % 64 + units) / 64) or 0
    if number % 256 == 0 or total % 4096 + units >= 4096 or trims > 0 and code == 'S' and p4 ~= 1 then
      break
    end
    local log
    if code == 'L' then
      log = base .. ':log:' .. accountID
    elseif code == 'S' then
      log = base .. ':stream:' .. accountID
    end
    if code == 'S' and (from < p3 or p2 + units > 4503599627370000 or
      total + units + wanted - turn > p1 and (p4 ~= 1 or max == 0)) then
      break
    end

    -- The slots that were found, how many leave at each, and for GCRA the time that each takes,
    -- and its end: three of each group of bookings; and whether the log is known to be there.
    local groups, more, n, final, score, there = nil, '', 0, edge, nil, place or not log
    local i, ranks = 1, nil
    while i <= wanted do
      -- From the i-th on that many leave at one slot.
      local c, s, key, alike = cost, nil, nil, 1
      local x, part, e, rest
      if i > turn then
        c = 1
      end
      if log and total + n * cost + c <= p1 then
        s, alike = from, (p1 - total) / cost - n
      elseif code == 'L' then
        -- The last unit waits for the one that is Max before it, of each limit.
        local stands, one, apart = 0, max, span
        s, alike = from, math.huge
        repeat
          if max == 0 then
            local tolerance
            _, stands, one, apart, tolerance = string.find(rules, '(%d+) (%d+) (%d+) L', stands + 1)
            apart = apart + tolerance
          end
          local unit, k, size, oldest = total + n * cost + c - 1 - one, -1, 0.5, nil
          if p2 == 1 and unit < total and (wanted > 1 or unit < p3) then
            -- It is as many from the end. Those behind it are the next ones'.
            ranks = ranks or {}
            local entries = ranks[one]
            if not entries then
              local stop = math.min(total - 1, unit + (wanted - i) * cost) - total
              entries = call('ZRANGE', log, unit - total, stop, 'WITHSCORES')
              entries.unit, ranks[one] = #entries == 2 * (stop - unit + total + 1) and unit or total, entries
            end
            size, oldest = 1, entries[2 * (unit - entries.unit) + 2]
          end
          while unit >= p3 and unit < total and not oldest and 2 * size <= p2 do
            k, size = k + 1, 2 * size
            if p2 % (2 * size) >= size then
              oldest = call('ZSCORE', k == 0 and log or log .. ':' .. k, struct.pack('>I7', unit - unit % size))
            end
          end
          if not oldest then
            s = nil
            break
          end
          there, s = true, math.max(s, oldest + apart)
          alike = math.min(alike, (size - 1 - unit % size) / c + 1)
        until max > 0 or not string.find(rules, ' L', stands + 1, true)
      elseif code == 'S' then
        local entry = call('XRANGE', log, string.format('%d', from - span + 1), '+', 'COUNT', 1)[1]
        if not entry then
          break
        end
        there = true
        local next, slot, unit = p2 + n * cost, string.match(entry[1], '^(%d+)-(%d+)$')
        if next - unit + c <= max then
          s, p1 = from, total + n * cost + max - next + unit
        elseif next + c - max <= unit + entry[2][2] then
          s = slot + span
        end
      elseif code == 'U' then
        if from < p3 and p2 + c <= max then
          s, alike = from, (max - p2) / c
        end
      elseif c > max then
        break
      elseif code == 'F' then
        key = (from - from % window) / window
        local opens = key * window + (margin - margin % 2) / 2
        s = from > opens and from or opens
        if s >= (key + 1) * window - margin or (key == p1 and p2 + c > max) then
          key, s = key + 1, opens + window
        end
        alike = (key == p1 and max - p2 or max) / c
      elseif code == '*' then
        key, s = p1, from
        if p2 == 0 or from >= p1 + window + margin then
          key = from
        elseif from >= p1 + window - margin or p2 + c > max then
          key, s = p1 + window + margin, p1 + window + margin
        end
        alike = (key == p1 and max - p2 or max) / c
      elseif code == 'W' then
        key = (from - from % window) / window
        for _ = 1, 4 do
          local older, room = 0, max - c
          if key == p1 then
            older, room = p4, room - p2
          elseif key == p1 + 1 then
            older = p2
          end
          if room >= 0 then
            s, alike = from > key * window and from or key * window, (room - older) / c + 1
            if older > room then
              local share = math.floor(room * window / older)
              if room * window > 9007199254740992 then
                share = math.min(share - 1, 9007199254740992)
              end
              s = math.max(s, (key + 1) * window + margin - share)
            end
            if s < (key + 1) * window - margin then
              break
            end
          end
          key, s = key + 1, nil
        end
      elseif code == 'G' and c <= p3 and window * c <= 9007199254740992 then
        -- As in gcra.lua: its time is from x to e.
        local spare = window * (p3 - c)
        local lower, latest = p1 + math.ceil((p2 - spare) / max) + margin, (spare - spare % max) / max
        if spare > 9007199254740992 then
          latest = math.ceil(window * ((p3 - c) / max)) + 1
          lower = p1 + math.ceil(window * ((c - p3) / max)) + 1 + margin
        end
        s, x, part = from > lower and from or lower, p1, p2
        if x < s then
          x, part = s, 0
        end
        rest = window * c % max
        e, rest = x + (window * c - rest) / max, part + rest
        if rest >= max then
          e, rest = e + 1, rest - max
        end
        latest = s - margin + latest
        if lower >= s then
          x, part = p1, p2
        elseif x > latest or x == latest and part > 0 then
          x, part = latest, 0
        end
        if p1 > x or p1 == x and p2 > part then
          x, part = p1, p2
        end
        -- What would be free before it is to be noted.
        if x > now and (x > p1 or part > p2) then
          s = nil
        end
      end
      if i > turn then
        score = s
        break
      end
      alike = i < turn and math.max(1, math.min(math.floor(alike), turn - i + 1)) or 1
      if not s or s > bound or s + span > ends or s > 9007199254740992 then
        break
      end
      if longest < 4503599627370496 and s - now > longest then
        late, final = true, s
        break
      end
      if key and key ~= p1 and p2 > 0 then
        -- The window that is left is the hash's again.
        local hash = base .. ':acct:' .. accountID
        if call('EXISTS', hash) == 0 then
          break
        end
        local name = string.format(code == 'W' and 'W/%.0f/0/-/-:%.0f' or code == 'F' and 'F/%.0f/0/-/-:%.0f' or
          'F/%.0f/0/-/*:%.0f', window, p1)
        if code == 'F' then
          call('HSET', hash, name, p2)
        elseif code == '*' then
          call('HSET', hash, name, p2, name .. '<', final, name .. '^', p3)
        else
          call('HSET', hash, name, p2, name .. '<', p3)
        end
      end
      if code == 'G' then
        more = struct.pack('>I7I5I7I5I5', x > 0 and x or 0, part, e, rest, max)
        p1, p2 = e, rest
      elseif code ~= 'L' and code ~= 'S' then
        if code == 'W' and key ~= p1 then
          p3, p4 = 9007199254740992, key == p1 + 1 and p2 or 0
        elseif code == '*' and (key ~= p1 or p2 == 0) then
          p3 = 0
        end
        if key and key ~= p1 then
          p1, p2 = key, 0
        end
        p2 = p2 + alike * cost
        if code == '*' and s == p1 then
          p3 = p3 + alike * cost
        elseif code == 'W' then
          local remains = (key + 1) * window - (s - margin > key * window and s - margin or key * window)
          local product = (max > p2 and max - p2 or 0) * window
          local share = math.floor(product / remains)
          if product > 9007199254740992 then
            share = share - 1
          end
          p3 = share < p3 and share or p3
        end
      end
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

    -- The units of a log are cut into parts. A set that is new, or gone, is for the rest.
    local parts
    if code == 'L' and n > 0 and (n * cost > 1 or p2 % 2 == 0) then
      local unit, keys = total, {}
      parts, there = {}, true
      for g = 1, #groups, 3 do
        local rest = groups[g + 1] * cost
        while rest > 0 do
          local k, size = 0, 1
          while 2 * size <= rest and unit % (2 * size) == 0 do
            k, size = k + 1, 2 * size
          end
          local key = k == 0 and log or log .. ':' .. k
          local add = parts[key]
          if not add then
            add, there = {}, there and p2 % (2 * size) >= size
            parts[key], keys[#keys + 1] = add, key
          end
          local behind = #add
          add[behind + 1], add[behind + 2] = groups[g], struct.pack('>I7', unit)
          unit, rest = unit + size, rest - size
        end
      end
      if not there or call('EXISTS', unpack(keys)) ~= #keys then
        break
      end
    elseif not there and (code == 'L' and p2 % 2 == 0 or call('EXISTS', log) == 0) then
      break
    end

    -- Only now is anything written.
    if parts then
      for key, add in pairs(parts) do
        call('ZADD', key, unpack(add))
      end
    elseif code == 'L' and n > 0 then
      call('ZADD', log, string.format('%d', from), struct.pack('>I7', total))
    elseif code == 'S' then
      for g = 1, n > 0 and #groups or 0, 3 do
        for _ = 1, groups[g + 1] do
          call('XADD', log, string.format('%d-%d', groups[g], p2), 'c', cost)
          p2 = p2 + cost
        end
        p3 = from
      end
    end
    for _ = 1, trims do
      local oldest = now - span - math.min(span, 60000000)
      if code == 'S' then
        call('XTRIM', log, 'MINID', '~', oldest)
      else
        local old = call('ZRANGE', log, 127, 127, 'WITHSCORES')[2]
        if old and tonumber(old) < oldest then
          call('ZREMRANGEBYRANK', log, 0, 127)
        end
      end
    end
    -- Those that leave at one slot are one record, but for what each has of its own.
    local records, unit = n > 0 and #groups > 3 and {record}, total
    for g = 1, n > 0 and #groups or 0, 3 do
      local slot, alike, one = groups[g], groups[g + 1], records and '' or record
      more = groups[g + 2]
      if code == 'L' then
        one = struct.pack('>c0c1I2I8I7I2I2I2c0', one, 'B', alike, slot, unit, #accountID, 0, 0, accountID)
      elseif code == 'S' then
        one = struct.pack('>c0c1I2I8I7I2I2I2c0c2I7I5B', one, 'B', alike, slot, unit, #accountID, 0, 15, accountID,
          '\0S', p2 - n * cost + unit - total, cost, 0)
      else
        one = struct.pack('>c0c1I2I8I7I2I2I2c0c2I7I5Bc0', one, 'B', alike, slot, unit, #accountID, 0,
          15 + #more, accountID, '\0N', unit, cost, #more > 0 and 1 or 0, more)
      end
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
      record = struct.pack('>c0c1I2I8I7I2I2I2c0', record, 'L', count - done, final, 0, #accountID, 0, 0, accountID)
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
