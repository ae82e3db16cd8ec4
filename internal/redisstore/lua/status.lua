-- status.lua: tells what the callers of a budget must know beside their bookings.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the worker that asks, which is then counted for a minute; '' for none
--       3 the version that the worker knows; 0 for none
--       4 what its callers do, for people; '{}' if nothing, and '' if it has ended
--       5 why its callers get nothing; '' if they do
--       6 and on: for each limit of calls in flight that the worker asks permits of, its name, the limit, how many
--         calls of the worker are in flight, how many it wants, the share that it knows, how many were refused, and its
--         label
-- returns numbers: now, the version, when a log was last found missing or 0, how many
--         workers there are, the highest revision, the version of the newest card of an account, since which
--         version pauses are told, or
--         0 for all, 1 if there are more of them: the version is then that of the last
--         one, and 1 if a worker that knows none finds the keys of ration:v1; then which keys Redis evicts when its
--         memory is full, empty if none or nobody may know, as a worker that knows none is told; and the budget's card,
--         its limits with their edition and why they are; and when a worker last said that its callers get nothing, its
--         name and why, in lines. Then for each limit of calls in flight that was named the
--         worker's share, the limit in force, how many calls are in flight, and 1 if workers want more. Then for each
--         pause, in the order
--         in which they changed, the account's name, and the numbers when it
--         ends and how far apart slots are, and its cause, as pause.lua has them; and likewise for what
--         was ended, and for 'card:ACCOUNT', an account's card that was changed, with its limits and their
--         edition for the cause, and behind them why they are

-- So many pauses are told at once.
local MOST = 500

local now = clock(ARGV[1], readState().offset)
local known = tonumber(string.match(ARGV[3], '^%d+$'))
if bad or not known then
  return redis.error_reply(bad or 'ERR ration: the known version is no number')
end
local asked = {}
for i = 6, #ARGV, 7 do
  local one = {limit = ARGV[i], label = ARGV[i + 6]}
  one.max = whole(ARGV[i + 1], 'a limit of calls in flight', 1, COSTLIEST)
  one.used = whole(ARGV[i + 2], 'the number of calls in flight', 0, COSTLIEST)
  one.wanted = whole(ARGV[i + 3], 'the number of permits that are wanted', 0, COSTLIEST)
  one.knows = whole(ARGV[i + 4], 'a share of permits', 0, COSTLIEST)
  one.refused = whole(ARGV[i + 5], 'the number of calls that were refused', 0, COSTLIEST)
  if bad then
    return redis.error_reply(bad)
  end
  asked[#asked + 1] = one
end
local workers, loads = base .. ':workers', base .. ':loads'
if ARGV[4] == '' then
  call('ZREM', workers, ARGV[2])
  call('HDEL', loads, ARGV[2])
  for _, limit in ipairs(call('ZRANGEBYSCORE', base .. ':permits', '-inf', '+inf')) do
    if call('HDEL', base .. ':permits:' .. limit, ARGV[2]) > 0 then
      redis.pcall('PUBLISH', base, 'permits ' .. limit)
    end
  end
elseif ARGV[2] ~= '' then
  if readState().fresh then
    -- Its workers know the version then before they book. Otherwise each would have to ask for it with its first
    -- answer, whose slot does not wait for that. Of a worker that knows one the budget was lost.
    if known > 0 then
      noteLoss(readState(), now, 0)
    else
      renew(now)
    end
    outlast(text(DAY / 1000))
  end
  call('ZADD', workers, text(now), ARGV[2])
  call('HSET', loads, ARGV[2], ARGV[4])
  if ARGV[5] ~= '' then
    call('HSET', base, 'failing', text(now) .. '\n' .. ARGV[2] .. '\n' .. ARGV[5])
  end
  for _, gone in ipairs(call('ZRANGEBYSCORE', workers, '-inf', '(' .. text(now - GONE), 'LIMIT', 0, MOST)) do
    call('ZREM', workers, gone)
    call('HDEL', loads, gone)
  end
  call('PEXPIRE', workers, text(2 * GONE / 1000))
  call('PEXPIRE', loads, text(2 * GONE / 1000))
end
-- A user who may not see those keys is told nothing of them.
local old = known == 0 and redis.pcall('EXISTS', (string.gsub(base, '^ration:v2:', 'ration:v1:'))) == 1
-- Nor of how Redis is configured.
local evicts = ''
if known == 0 then
  local memory = redis.pcall('INFO', 'memory')
  memory = type(memory) == 'string' and memory or ''
  if string.find(memory, 'maxmemory:[1-9]') then
    evicts = string.match(memory, 'maxmemory_policy:([%a-]+)') or ''
  end
end
local state, kept = readState(), call('HMGET', base, 'revision', 'began', 'newest', 'card', 'why', 'failing')
local current = state.version
if (tonumber(string.match(kept[6] or '', '^%d+')) or now) < now - GONE then
  kept[6] = ''
end
-- A version that the list of changes does not reach back to, or that never was.
if known < tonumber(kept[2] or 0) or known > current then
  known = 0
end
local changes = known == current and {} or
  call('ZRANGEBYSCORE', base .. ':changes', '(' .. text(known), '+inf', 'WITHSCORES', 'LIMIT', 0, MOST)
local more = #changes == 2 * MOST and tonumber(changes[2 * MOST]) < current
local reply = {encode(now), encode(more and changes[2 * MOST] or current), encode(state.lost),
  encode(call('ZCARD', workers)), encode(kept[1] or 0), encode(kept[3] or 0), encode(known),
  encode(more and 1 or 0), encode(old and 1 or 0),
  named(evicts ~= 'noeviction' and evicts or ''), named(kept[4]), named(kept[5]), named(kept[6])}
for _, one in ipairs(asked) do
  reply[#reply + 1] = givePermits(ARGV[2], one, now)
end
for i = 1, #changes, 2 do
  local name = changes[i]
  local ends = pausedUntil(name)
  if ends > now or known > 0 or string.find(name, '^ended:') then
    local beside = call('HMGET', base .. ':apart', howField(name), name)
    local cause = call('HGET', base .. ':causes', name) or ''
    local apart = beside[1] or beside[2]
    local carded, why = string.match(name, '^card:(.*)$')
    if carded then
      local card = call('HMGET', base .. ':acct:' .. carded, 'limits', 'why')
      cause, why = card[1] or '', named(card[2])
    end
    reply[#reply + 1] = named(name) .. encode(ends) .. encode(apart or 0) .. named(cause) .. (why or '')
  end
end
return table.concat(reply)
