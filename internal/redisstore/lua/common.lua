-- common.lua: what every script begins with.
--
-- KEYS[1] is the budget's own hash, ration:v2:{NAME}. The names of the other
-- keys are made from it, because which account is charged is decided here;
-- they share its hash tag, so a Cluster keeps them on one node:
--
--   KEYS[1]                hash    what is known of the budget as a whole: see
--                                  the fields below
--   KEYS[1]:acct:ACCOUNT   hash    what is counted of the account: account.lua
--   KEYS[1]:log:ACCOUNT    zset    its log: single units, score = slot; with :K behind
--                                  it, the parts of 2^K units; with /SCOPES behind ACCOUNT,
--                                  the log of other requests: log.lua
--   KEYS[1]:stream:ACCOUNT stream  a log that is kept in a stream; :in:ACCOUNT and
--                                  :out:ACCOUNT are sets beside it: streamlog.lua
--   KEYS[1]:again:ACCOUNT  hash    a slot and a part of an entry, and the part under which it
--                                  is counted since it was recorded again: account.lua
--   KEYS[1]:gaps:ACCOUNT:LIMIT  zset  time that is free before the last booking: gcra.lua
--   KEYS[1]:pauses         zset    ACCOUNT, score = end of its pause; '*' is all; other names
--                                  are of what moves no slot, of what was ended: resume.lua, or of
--                                  an account whose card was changed: card.lua
--   KEYS[1]:changes        zset    the same names, score = the version that the status had
--                                  when the pause was last changed
--   KEYS[1]:apart          hash    ACCOUNT, how far apart workers of the first version
--                                  give slots, and of a quarantine what pause.lua has
--                                  beside its end; 'ACCOUNT*how', that of a pause;
--                                  'ACCOUNT*over', when its slow start is over;
--                                  'ACCOUNT*last', the last instant
--                                  that all accounts' pause has put a slot off to
--   KEYS[1]:pool:DIGEST*N  zset    SET:ACCOUNT, score <= its next free slot for N units; with
--                                  :QUEUE behind it, that of another queue
--   KEYS[1]:workers        zset    WORKER, score = when it was last heard of
--   KEYS[1]:loads          hash    what the callers of a WORKER did then, as JSON, for people
--   KEYS[1]:permits        zset    the limits of calls in flight; :permits:LIMIT hash: permits.lua
--   KEYS[1]:holders        zset    HOLDER, score = when it was last heard of, or 0: it is given
--                                  up; and three others: hold.lua
--   KEYS[1]:held:HOLDER    zset    its bookings to come: ID, account, entry, score = slot
--   KEYS[1]:fields         zset    the fields of KEYS[1] that end, score = when to look at
--                                  them next: session.lua
--   KEYS[1]:id:ID          string  'cancelled', 'recorded', or what correct.lua made of a booking,
--                                  for a minute
--
-- The fields of KEYS[1]: state, what every booking is to know of the budget: layout.lua;
-- began, the version that the list of changes reaches back to; revision, the highest that
-- limits were booked with; card, why and newest: card.lua; failing, the worker that last said so: status.lua;
-- a:ACCOUNT, the account's summary: layout.lua; s:SESSION, the last answer of a session: session.lua;
-- i:DIGEST or i:DIGEST:QUEUE, when an account of that index was booked last, a double, and its member.
--
-- Instants and durations are whole microseconds: as doubles they are exact up
-- to 2^53. Redis turns a number that is concatenated into 14 digits, so every
-- number that leaves a script passes through text(), encode() or struct.pack().

local base = KEYS[1]

-- What the script has done, in commands: a command takes some two microseconds, and
-- what a script does between two of them no longer. What can be put off is when this
-- is too much: by the clock it could not be told, which stands still while a script
-- runs in Redis 7.2 and later.
local work = 0
local carryOut = redis.call
local function call(...)
  work = work + 1
  return carryOut(...)
end

local DAY = 86400000000
-- A difference of clocks that is taken for a step.
local STEP = 1000000
-- How long no slot comes after a log was found missing: time for the workers to
-- enter again what they know to have booked. It is longer while they do so: record.lua.
local GRACE = 2000000
-- What has left the window is removed so much later, or a window later if that is shorter: a
-- clock that steps back by less finds it.
local LATER = 60000000
-- A worker that was not heard of for so long is gone.
local GONE = 60000000
-- That something was done is known for as long as a copy of its question can
-- still arrive: go-redis asks up to 4 times, 5 s each.
local REMEMBER = '60000'
-- The most units of a limit, and so the most of one cost.
local COSTLIEST = 1000000000000
-- By how much keys outlive what they are needed for at least, so that not every booking has
-- to say anew when they expire.
local SLACK = 3600000000

-- The first argument that is wrong. Scripts look at it before they write.
local bad

local function text(n)
  return string.format('%.0f', n)
end

-- A script answers one string: numbers of 8 bytes each, most significant byte first,
-- and names behind their length in 2 bytes. book.lua has records besides.
local function encode(n)
  return struct.pack('>I8', tonumber(text(n)))
end

local function named(s)
  s = s or ''
  return struct.pack('>I2', #s) .. s
end

-- whole reads a whole number between least and most. Anything else (a sign, a
-- fraction, hexadecimal digits, nan) is an error: with a longest wait of nan,
-- or a limit of -3, every call would be granted.
local function whole(s, name, least, most)
  local n = s and #s <= 16 and string.find(s, '^%d+$') and tonumber(s)
  if n and n >= least and n <= most then
    return n
  end
  bad = bad or ('ERR ration: ' .. name .. ' is ' .. tostring(s) ..
    ': it must be a whole number from ' .. text(least) .. ' to ' .. text(most))
  return least
end

-- among checks a number that came as bytes.
local function among(n, name, least, most)
  if n < least or n > most then
    bad = bad or ('ERR ration: ' .. name .. ' is ' .. text(n) ..
      ': it must be from ' .. text(least) .. ' to ' .. text(most))
  end
  return n
end

-- The clock is read once: in Redis 7.0 it moves while a script runs.
local function clock(s, offset)
  if s ~= '' then
    return whole(s, 'now', 1, 4503599627370496) + offset
  end
  local t = call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2]) + offset
end

local budget

-- readState returns the numbers of the field state by name; the field is given by who has read it already.
local function readState(field)
  field = field or not budget and call('HGET', base, 'state')
  if field then
    local seen, version, lost, graceEnds, pausesEnd, offset, card = struct.unpack(STATE, field)
    budget = {
      seen = seen, version = version, lost = lost, graceEnds = graceEnds, pausesEnd = pausesEnd, offset = offset,
      card = card,
    }
  end
  budget = budget or {
    seen = 0, version = 0, lost = 0, graceEnds = 0, pausesEnd = 0, offset = 0, card = 0, fresh = true,
  }
  return budget
end

-- forwardClock reads the clock. The server's does not stand before the latest booking.
local function forwardClock(s)
  local state = readState()
  local now = clock(s, state.offset)
  return s == '' and math.max(now, state.seen) or now
end

local function packState()
  return struct.pack(STATE, budget.seen, budget.version, budget.lost, budget.graceEnds, budget.pausesEnd,
    budget.offset, budget.card)
end

-- readSummary reads the beginning of an account's summary into a table, by name.
local function readSummary(packed, into)
  into.ends, into.total, into.edge, into.last = struct.unpack(SUMMARY, packed)
  return into
end

-- packSummary packs what readSummary reads. A number that is not there is 0.
local function packSummary(summary)
  return struct.pack(SUMMARY, summary.ends or 0, summary.total, summary.edge or 0, summary.last or 0)
end

-- writeState refuses a user who may not set an expiry before there is a key that would never expire. It
-- sets none: Redis refuses a script for want of memory only before the script's first write.
local function writeState()
  if budget.fresh and redis.acl_check_cmd and not redis.acl_check_cmd('PEXPIRE', base, '1') then
    error({err = 'NOPERM this user has no permissions to run the PEXPIRE command'})
  end
  budget.fresh = nil
  call('HSET', base, 'state', packState())
end

-- What an algorithm that keeps no log does, by its code: account.lua.
local counters = {}

-- The time zones that the arguments spell out, by name.
local zones = {}

-- readZone reads a zone, 'OFFSET INSTANT OFFSET ...': what is added to an instant to have
-- local time there, and from when on. nil if it is malformed.
local function readZone(offsets)
  local zone = {text = offsets}
  for part in string.gmatch(offsets, '%S+') do
    zone[#zone + 1] = string.find(part, '^-?%d+$') and #part <= 17 and tonumber(part) or nil
    if not zone[#zone] or zone[#zone] ~= tonumber(part) then
      return nil
    end
  end
  return #zone % 2 == 1 and zone or nil
end

-- readZones reads so many zones, each 'NAME OFFSET INSTANT OFFSET ...'. It returns the place
-- of the argument behind them.
local function readZones(first, count)
  count = whole(count, 'the number of zones', 0, 1000)
  for i = first, first + count - 1 do
    local name, rest = string.match(ARGV[i] or '', '^(%S+) (.+)$')
    zones[name or ''] = readZone(rest or '')
    if not zones[name or ''] then
      bad = bad or 'ERR ration: a zone is not a name and whole numbers'
    end
  end
  return first + count
end

local LOGS = {L = true, S = true}

-- limitset reads limits that are kept at once, each 'MAX WINDOW MARGIN LETTER
-- EXTRA SCOPE ZONE': EXTRA is GCRA's burst or the sub-windows' length, or 0; SCOPE
-- and ZONE may be '-'. Windows of a log are longer by the margin.
local function limitset(s)
  local set = {text = s, window = 0, shortest = math.huge, largest = 0}
  local read, names = -1, {}
  for max, window, margin, code, extra, scope, zone in
    string.gmatch(s or '', '(%d+) (%d+) (%d+) (%u) (%d+) (%S+) (%S+)') do
    read = read + #max + #window + #margin + #extra + #scope + #zone + 8
    local limit = {
      max = whole(max, 'a limit\'s Max', 1, COSTLIEST),
      window = whole(window, 'a limit\'s Window', 1000, 400 * DAY),
      margin = whole(margin, 'a limit\'s Margin', 0, DAY),
      code = code,
      extra = whole(extra, 'a limit\'s extra', 0, 400 * DAY),
      scope = scope,
      zone = zone,
    }
    set.shortest = math.min(set.shortest, limit.window)
    set.largest = math.max(set.largest, limit.max)
    if LOGS[code] then
      limit.window = limit.window + limit.margin
      set.window = math.max(set.window, limit.window)
      set.log = set.log or code
    else
      -- What may not change without the count beginning anew.
      local byExtra = counters[code] and counters[code].namedByExtra
      limit.name = table.concat({code, window, byExtra and extra or 0, scope, zone}, '/') .. ':'
      set.window = math.max(set.window, limit.window + limit.margin)
      if not counters[code] then
        bad = bad or 'ERR ration: a limit is counted in no way that is known: ' .. code
      elseif names[limit.name] then
        bad = bad or 'ERR ration: two limits differ in their Max only'
      end
      names[limit.name] = true
    end
    if zone ~= '-' and zone ~= '*' and not zones[zone] then
      bad = bad or 'ERR ration: a limit\'s zone was not given: ' .. zone
    end
    set[#set + 1] = limit
    limit.most = limit.max
    if counters[code] and counters[code].mostAtOnce then
      limit.most = counters[code].mostAtOnce(limit)
    end
  end
  -- What is left over would be a limit that nobody keeps.
  if #set == 0 or read ~= #s then
    bad = bad or 'ERR ration: a set of limits is not MAX WINDOW MARGIN LETTER EXTRA SCOPE ZONE each'
  end
  return set
end

-- splitEdition returns the numbers of an edition, and what stands behind it: 'REVISION VERSION SET'.
local function splitEdition(s)
  local revision, version, rest = string.match(s or '', '^(%d+) (%d+) (.*)$')
  return tonumber(revision), tonumber(version), rest
end

-- editionset reads limits with their edition.
local function editionset(s)
  local revision, version, limits = splitEdition(s)
  local set = limitset(limits)
  set.revision = whole(revision and text(revision), 'the revision', 0, 4503599627370496)
  set.version = whole(version and text(version), 'the version of a card', 0, 4503599627370496)
  return set
end

-- isLater reports whether an edition is later than another.
local function isLater(revision, version, otherRevision, otherVersion)
  return revision > otherRevision or revision == otherRevision and version > otherVersion
end

-- shape returns what of a set of limits makes a count begin anew if it changes.
local function shape(s)
  return (string.gsub(s, '%d+ (%d+) %d+ (%u %d+ %S+ %S+)', '%1 %2'))
end

-- Whether the caller has found that no pause lasts.
local noPauses = false

local function pausedUntil(accountID)
  return noPauses and 0 or tonumber(call('ZSCORE', base .. ':pauses', accountID) or 0)
end

-- outlast keeps KEYS[1] for so many milliseconds at least, and the list of its fields that
-- end, without which they would not be found again.
local function outlast(ttl)
  if call('PTTL', base) < tonumber(ttl) then
    call('PEXPIRE', base, ttl)
    call('PEXPIRE', base .. ':fields', ttl)
  end
end

-- renew gives the status a version that was never used before, even if the hash
-- has expired meanwhile, and tells it to those who wait. A user who may not publish
-- loses nothing but time: every answer has the version too.
local function renew(now)
  local state = readState()
  if state.fresh then
    state.lost = now -- a new budget, or one that was lost whole: only its workers know
  end
  state.version = math.max(now, state.version + 1)
  writeState()
  redis.pcall('PUBLISH', base, text(state.version))
end

-- noteLoss notes that a log is gone. Until the workers have recorded again what they booked
-- nothing else is booked.
local function noteLoss(state, now, seen)
  -- What was booked up to then was booked before.
  state.lost, state.graceEnds = math.max(now, seen + 1), now + GRACE
  renew(now)
  -- An old dump, or another node: what changed before may have been lost as well.
  call('HSET', base, 'began', text(state.version))
end

-- A slow start has so many steps.
local STEPS = 12

-- stepOf returns how long a step takes of the slow start, of what pause.lua has beside the end of a pause.
local function stepOf(beside)
  return tonumber(beside or 0) % 137438953472
end

-- howField, overField and lastField name the fields of a pause: what pause.lua has beside its end, when its slow start
-- is over, and the last slot that was given.
local function howField(accountID)
  return accountID .. '*how'
end
local function overField(accountID)
  return accountID .. '*over'
end
local function lastField(accountID)
  return accountID .. '*last'
end

-- released returns the first slot that a pause and its slow start leave, or 0 if both are over: a slot in the n-th step
-- puts the next off by a step, divided by 2^n.
local function released(accountID, now)
  if noPauses then
    return 0
  end
  local spread = call('HMGET', base .. ':apart', overField(accountID), howField(accountID), lastField(accountID))
  local ends = pausedUntil(accountID) -- a worker of the first version says only that
  if math.max(tonumber(spread[1] or 0), ends) <= now then
    return 0
  end
  local step, last = stepOf(spread[2]), tonumber(spread[3] or 0)
  if last < ends or step == 0 then
    return math.max(now, ends)
  end
  return math.max(now, last + math.floor(step / 2 ^ math.floor((last - ends) / step)))
end

-- release notes that a slot was given which these have left.
local function release(accountID, slot)
  call('HSET', base .. ':apart', lastField(accountID), text(slot))
end

-- forgetPause forgets what there is beside the end of a pause.
local function forgetPause(name)
  call('HDEL', base .. ':apart', name, howField(name), overField(name), lastField(name))
  call('HDEL', base .. ':causes', name)
end

-- noteChange notes in the status when a pause ends, or ended, what pause.lua has beside that, and what people are told
-- of its cause.
local function noteChange(name, ends, now, apart, cause)
  local pauses, spread, changes, causes = base .. ':pauses', base .. ':apart', base .. ':changes', base .. ':causes'
  local state = readState()
  local moves = not string.find(name, ':', 1, true) -- slots: it is of accounts
  local over = moves and ends + STEPS * stepOf(apart) or ends
  local paused = moves or string.find(name, '^at:') ~= nil
  if moves and pausedUntil(name) <= now then
    call('HDEL', spread, lastField(name)) -- another slow start
  end
  call('ZADD', pauses, text(ends), name)
  state.pausesEnd = math.max(over, state.pausesEnd)
  renew(now)
  call('ZADD', changes, text(state.version), name)
  call('HSET', spread, name, text(paused and math.min(stepOf(apart), 1000000) or apart))
  if paused then
    call('HSET', spread, howField(name), text(apart))
  end
  if moves then
    call('HSET', spread, overField(name), text(over))
  end
  if cause == '' then
    call('HDEL', causes, name)
  else
    call('HSET', causes, name, cause)
  end
  local last = tonumber(call('ZRANGE', pauses, -1, -1, 'WITHSCORES')[2])
  local ttl = text(math.ceil((math.max(last, over, now) - now + DAY) / 1000))
  call('PEXPIRE', pauses, ttl)
  call('PEXPIRE', spread, ttl)
  call('PEXPIRE', changes, ttl)
  call('PEXPIRE', causes, ttl)
  outlast(ttl)
  for _, other in ipairs(call('ZRANGEBYSCORE', pauses, '-inf', '(' .. text(now - DAY), 'LIMIT', 0, 16)) do
    call('ZREM', pauses, other)
    call('ZREM', changes, other)
    forgetPause(other)
  end
end

-- extendPause pauses an account until an instant, if it is not paused for longer.
local function extendPause(accountID, ends, now, apart, cause)
  if ends > math.max(now, pausedUntil(accountID)) then
    noteChange(accountID, ends, now, apart, cause)
  end
end
