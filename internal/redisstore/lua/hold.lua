-- hold.lua: says that a holder is alive and which bookings its callers wait for, and takes back those to
-- come of holders that are silent.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the holder, 32 hexadecimal digits
--       3 when the holder heard of the store last, if it has bookings here; or ''
--       4 for how long the holder will not be heard of, in microseconds
--       then for each booking that it has from now on its ID, 32 hexadecimal digits; the account that is
--         charged; the entry; and its slot
-- returns numbers: now, the status's version, what is known of the holder: 0 all, 1 it was given up, 2 what
--         it named now only; 1 if more is to be taken back; and after how many microseconds to ask again at the
--         latest, or 0
--
-- A holder is given up for good: its score among the holders is 0 from then on, until nothing of it is
-- left. So a process that was stopped finds that its bookings are gone, or may be.

-- A holder is given up that was silent for so long, while others were heard.
local SILENT = 3000000
-- If nobody was heard for so long the store itself was away, or nobody waited: unless the one that is heard now
-- has said that it would be silent.
local APART = 2000000
-- Of many holders one after the other looks for those that are silent, on average so long after each other.
local TURN = 250000
-- So many bookings are taken back at once, and so many holders looked at.
local AT_ONCE, HOLDERS = 64, 16
-- The members of the holders that are none: when the list was begun, when it was last heard of anyone, and
-- since when anyone was heard without a gap.
local BEGAN, HEARD, SINCE = '*began', '*heard', '*since'

local state = readState()
local now = forwardClock(ARGV[1])
local holder = ARGV[2]
local last = ARGV[3] ~= '' and whole(ARGV[3], 'when the holder heard of the store', 1, 4503599627370496)
local silent = whole(ARGV[4], 'how long the holder is silent', 0, 60000000)
local slots = {}
for i = 5, #ARGV, 4 do
  slots[i] = whole(ARGV[i + 3], 'the slot', 1, 4503599627370496 + 400 * DAY)
  if #ARGV[i] ~= 32 or ARGV[i + 1] == '' or not parse(ARGV[i + 2] or '') then
    bad = bad or 'ERR ration: a booking is not one that book.lua returned'
  end
end
if #holder ~= 32 then
  bad = bad or 'ERR ration: a holder must have 32 digits'
end
if bad then
  return redis.error_reply(bad)
end

local holders = base .. ':holders'
local function scoreOf(member)
  return tonumber(call('ZSCORE', holders, member) or nil)
end
local score, began, heard, since = scoreOf(holder), scoreOf(BEGAN) or now, scoreOf(HEARD), scoreOf(SINCE)
if not since or now - math.max(heard, score or 0) > APART then
  since = now
end

-- What the ID of a booking is known as that was taken back here.
local TAKEN = 'taken back'

-- keepHeld notes the bookings that were named, but not those that were cancelled on the way.
local function keepHeld(becomes)
  local key, latest, members = heldKey(holder), now, {}
  for i = 5, #ARGV, 4 do
    if slots[i] > now and not becomes[i] then
      members[#members + 1], members[#members + 2] = text(slots[i]), heldMember(ARGV[i], ARGV[i + 1], ARGV[i + 2])
      latest = math.max(latest, slots[i])
    end
  end
  if members[1] then
    call('ZADD', key, unpack(members))
  end
  call('ZREMRANGEBYSCORE', key, '-inf', '(' .. text(now - GONE))
  local ttl = text(math.ceil((latest - now + DAY) / 1000))
  for _, each in ipairs({key, holders}) do
    if call('PTTL', each) < tonumber(ttl) then
      call('PEXPIRE', each, ttl)
    end
  end
end

-- takeBackHeld takes back the bookings to come of holders that are given up. It returns whether there
-- are more.
local function takeBackHeld()
  local opened, left = {}, AT_ONCE
  for _, other in ipairs(call('ZRANGEBYSCORE', holders, '-inf', text(now - SILENT), 'LIMIT', 0, HOLDERS)) do
    local key = heldKey(other)
    if left == 0 then
      break
    elseif string.sub(other, 1, 1) ~= '*' then
      local gone = call('ZRANGEBYSCORE', key, '(' .. text(now), '+inf', 'WITHSCORES', 'LIMIT', 0, left)
      for i = 1, #gone, 2 do
        local id, accountID, entry = string.match(gone[i], '^(%x+) ([^ ]+) (.*)$')
        local slot = tonumber(gone[i + 1])
        -- A holder that was stopped for long must find this.
        local ttl = text(math.ceil((slot - now + DAY) / 1000))
        if call('SET', base .. ':id:' .. id, TAKEN, 'PX', ttl, 'NX') then
          cancelEntry(opened, entry, accountID, slot, now)
        end
        call('ZREM', key, gone[i])
      end
      left = left - #gone / 2
      if left > 0 then
        call('UNLINK', key)
        call('ZREM', holders, other)
      else
        call('ZADD', holders, 0, other)
      end
    end
  end
  writeOpened(opened)
  announceFreed(opened)
  return left == 0
end

-- nextLook returns after what time this holder should look whether another one is silent, or 0. All are told so of
-- the one that is to be heard of first, and look one after the other: most often the first finds that it is alive.
local function nextLook()
  local some = call('ZRANGEBYSCORE', holders, '(0', '+inf', 'WITHSCORES', 'LIMIT', 0, 5)
  for i = 1, #some, 2 do
    if string.sub(some[i], 1, 1) ~= '*' and some[i] ~= holder then
      local turn = tonumber(string.sub(holder, 1, 4), 16) / 65536 * (call('ZCARD', holders) - 3) * TURN
      return math.max(1, math.floor(tonumber(some[i + 1]) + SILENT + turn - now))
    end
  end
  return 0
end

local becomes, taken = {}, false -- what the ID of each booking is known as; false: it waits
for i = 5, #ARGV, 4 do
  becomes[i] = call('GET', base .. ':id:' .. ARGV[i])
  taken = taken or becomes[i] == TAKEN
end
local answer = 0
if taken or score == 0 then
  answer = 1
elseif last and not score then
  answer = began <= last and 1 or 2
end
call('ZADD', holders, text(began), BEGAN, text(now), HEARD, text(since), SINCE)
if answer ~= 1 then
  call('ZADD', holders, text(now + silent), holder)
  keepHeld(becomes)
end
local more = since <= now - SILENT and takeBackHeld()
return encode(now) .. encode(state.version) .. encode(answer) .. encode(more and 1 or 0) .. encode(nextLook())
