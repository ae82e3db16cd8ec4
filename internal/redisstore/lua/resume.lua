-- resume.lua: ends pauses and quarantines before their time.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the account whose pauses end, those of a part of it too; '' for none
--       3 the token whose quarantines end; '' for none. Without account and token all end
--       4 the name under which the status tells that they were ended: 'ended:...'
--       5 '1' to forget what is kept of the account as well; or ''
-- returns numbers: now, the status's version now, and before

local now = clock(ARGV[1], readState().offset)
local accountID, token, name, forget = ARGV[2], ARGV[3], ARGV[4], ARGV[5] == '1'
local all = accountID == '' and token == ''
if string.sub(name, 1, 6) ~= 'ended:' then
  bad = bad or 'ERR ration: the name of what is ended does not begin with ended:'
elseif forget and accountID == '' then
  bad = bad or 'ERR ration: there is no account to forget'
end
if bad then
  return redis.error_reply(bad)
end

-- isMeant reports whether what has the name ends: neither an account's ID nor a key, nor a reason or a
-- token's ID, has a colon.
local function isMeant(other)
  if string.find(other, '^ended:') or string.find(other, '^card:') then
    return false
  elseif all then
    return true
  elseif string.find(other, '^quarantine:') then
    return token ~= '' and string.match(other, '^quarantine:[^:]*:(.*)$') == token
  end
  return accountID ~= '' and (other == accountID or string.match(other, '^at:[^:]*:(.*)$') == accountID)
end

local before, state = readState().version, readState()
local pauses, changes = base .. ':pauses', base .. ':changes'
local paused = {}
for _, other in ipairs(call('ZRANGE', pauses, 0, -1)) do
  if isMeant(other) then
    call('ZREM', pauses, other)
    call('ZREM', changes, other)
    forgetPause(other)
    paused[#paused + 1] = other
  end
end
if all then
  state.pausesEnd = 0
end
noteChange(name, now, now, 0, '')

-- Who books next gets the first slots that the limits admit: those that were given lie behind
-- the end of the pause, and their callers may be gone.
local opened = {}
local function rewindQueue(id)
  if opened[id] == nil then
    opened[id] = openOwn(id, now) or false
    if opened[id] then
      opened[id].ahead = true
    else
      lowerScores(readAccount(id, nil, now))
    end
  end
end

if forget then
  local account = openOwn(accountID, now) or readAccount(accountID, nil, now)
  account.last = 0
  local keys = keysOf(account)
  keys[#keys + 1], keys[#keys + 2] = account.key, againKey(account)
  for field in pairs(account.fields) do
    if string.sub(field, 1, 5) == 'last:' then
      account.fields[field] = nil
    end
  end
  lowerScores(account)
  for _, key in ipairs(ownKeysOf(account)) do
    keys[#keys + 1] = key
  end
  inParts('UNLINK', keys[1], {unpack(keys, 2)})
  -- The numbers of units go on: what is cancelled late must not take back another booking.
  call('HSET', base, 'a:' .. accountID, packSummary({total = account.total}))
  enroll('a:' .. accountID, now + DAY)
elseif accountID ~= '' then
  rewindQueue(accountID)
end
if all then
  for _, id in ipairs(paused) do
    rewindQueue(id)
  end
  for _, field in ipairs(call('ZRANGE', base .. ':fields', 0, -1)) do
    local summary = string.sub(field, 1, 2) == 'a:' and call('HGET', base, field)
    if summary and readSummary(summary, {}).edge > now then
      rewindQueue(string.sub(field, 3))
    end
  end
end
writeOpened(opened)
return encode(now) .. encode(state.version) .. encode(before)
