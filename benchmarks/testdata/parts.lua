-- Behind lua/quick.lua: does one part of a booking 5,000 times, and returns how long
-- one took, in microseconds.
local TIMES = 5000
local base, part = KEYS[1], ARGV[1]
local call, session = redis.call, string.rep('s', 16)
local spent = string.find(part, 'spent') and 5000
local set = (spent or 1000000000) .. ' 3600000000 1000000 L 0 - -'

local function clock()
  local time = call('TIME')
  return time[1] * 1000000 + time[2]
end

-- An account with a booking, as quick.lua knows it.
local now = clock()
local instant, log = string.format('%.0f', now), base .. ':log:one'
call('HSET', base, 'version', instant, 'seen', instant, 'lost', instant,
  's:' .. session, struct.pack('>I8I8I8', 1, 1, 1) .. string.rep('x', 80),
  'has:one', struct.pack('>I8I8I8I8', now + 2e11, 3601000000, 0, 0) .. '0 ' .. set)
for i = 1, spent or 1 do
  call('ZADD', log, string.format('%.0f', now - 6000 + i), struct.pack('>I7I5', 1795000000000000 + i, 1))
end

local bookings = string.match(part, '(%d+) booking')
if bookings then
  ARGV = {'', session, 'U' .. struct.pack('>I2I6I8', tonumber(bookings), 1, 4503599627370496),
    '', '', '0', '0', '1', set, '0', '1:one'}
end
local parts = {
  ['TIME'] = function() call('TIME') end,
  ['HMGET of 8 fields'] = function()
    call('HMGET', base, 'version', 'offset', 'seen', 'careful', 'lost', 'silent', 's:' .. session, 'has:one')
  end,
  ['ZRANGE of the last entry'] = function() call('ZRANGE', log, -1, -1, 'WITHSCORES') end,
  ['ZADD'] = function(i) call('ZADD', log, string.format('%.0f', now + i), struct.pack('>I7I5', i, 1)) end,
  ['HSET of 2 fields'] = function() call('HSET', base, 'seen', instant, 's:' .. session, string.rep('y', 100)) end,
  ['a number as text'] = function(i) return string.format('%.0f', now + i) end,
}
local work = parts[part] or function(i)
  ARGV[1] = struct.pack('>I8I8I8I8I8I8I8I8', 0, 0, 0, 0, 0, 0, i + 1, 7)
  assert(quick(), 'quick.lua leaves this to book.lua')
end
local begun = clock()
for i = 1, TIMES do
  work(i)
end
return string.format('%.3f', (clock() - begun) / TIMES)
