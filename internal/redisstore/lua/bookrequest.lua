-- bookrequest.lua: reads the arguments of book.lua, which says what they are.
--
-- A request has
--
--   given, reckoned, before, recovered, found  the instants of ARGV[1]; false for none, but given 0
--   card          the version of the budget's card that the caller knows
--   lead          for how long from now no slot is of use
--   costs, waits  of each booking its cost, and its longest wait
--   units         of each booking the units of the meters, in 6 bytes each
--   queue         the bookings' queue: its name, scopes and reserve
--   setOf         a function from the number of a set of limits to the set, or nil
--   meters        what is charged beside each account, with unit and set
--   shared        the shared accounts, each with accountID and set
--   most          the most that a booking may cost by their limits
--   index         the key of the accounts' index; false: there is a single account
--   pools         what stands before and behind the name of an index of the queue, in its key
--   excluded      the accounts of the index that must not be charged, by name
--   single        the member that is the single account, or nil
--   told          what ARGV tells of the index: '', 'part', 'all', 'copy' or 'behind'
--   members       the place in ARGV from which on it tells of members
--   count         with 'all' and 'copy': how many members the index has
--   old           with 'copy': the index that it is made from; all that follows are changes
--   behind        with 'behind': where a search goes on: score, member, before and newest

-- readMember reads SET:ACCOUNT, and returns the account and its set of limits.
local function readMember(request, member)
  local number, accountID = string.match(member or '', '^(%d+):(.+)$')
  local set = number and request.setOf(tonumber(number))
  if not set then
    bad = bad or 'ERR ration: an account has no set of limits'
  end
  return accountID, set
end

local readRequest

do
  -- So many sets of limits are read before all else. Where there are more, those of others than are
  -- needed are not read at all.
  local READ = 64

  -- setReader returns what reads the sets of limits, each once. The second is the argument at a place.
  local function setReader(firstSet, count, second)
    local sets = {}
    local function setOf(number)
      if not sets[number] and number and number >= 1 and number <= count then
        sets[number] = editionset(number == 1 and firstSet or ARGV[second - 2 + number])
      end
      return sets[number]
    end
    for i = 1, math.min(count, READ) do
      setOf(i)
    end
    return setOf
  end

  -- readBookings reads the costs of the bookings, their units of so many meters, and their longest waits.
  local function readBookings(asked, meters)
    local costs, units, waits, at = {}, {}, {}, 73
    while at + 16 + 6 * meters <= #asked do
      local kind, count, cost, longest = struct.unpack('>c1I2I6I8', asked, at)
      local metered = string.sub(asked, at + 17, at + 16 + 6 * meters)
      at = at + 17 + #metered
      for i = 1, meters do
        among(struct.unpack('>I6', metered, 6 * i - 5), 'the units of a meter', 0, COSTLIEST)
      end
      if (kind ~= 'U' and kind ~= 'D') or (kind == 'D' and at + 8 * count - 1 > #asked) then
        break
      end
      among(cost, 'a cost', 1, COSTLIEST)
      for i = 1, count do
        local patience = kind == 'U' and longest or struct.unpack('>I8', asked, at + 8 * (i - 1))
        costs[#costs + 1], units[#units + 1] = cost, metered
        waits[#waits + 1] = among(patience, 'the longest wait', 0, 4503599627370497)
      end
      at = at + (kind == 'D' and 8 * count or 0)
    end
    if at ~= #asked + 1 or #costs == 0 or #costs > 1024 then
      bad = bad or 'ERR ration: there must be from 1 to 1024 bookings, of 17 bytes and more'
    end
    return costs, units, waits
  end

  -- readShared reads the meters and the shared accounts, from a place in ARGV on, and returns the place behind them.
  -- The queue's name is made from theirs.
  local function readShared(request, first, count)
    local queue, names = request.queue, {}
    count = whole(count, 'the number of shared accounts', 0, 100)
    for i = 1, count do
      local accountID, set = readMember(request, ARGV[first + i - 1])
      local unit = unitOf(accountID or '')
      names[i] = accountID
      if set and unit then
        request.meters[#request.meters + 1] = {unit = unit, set = set}
      elseif set then
        request.shared[#request.shared + 1] = {accountID = accountID, set = set}
        request.most = math.min(request.most, mostOf(set, queue.scopes))
      end
    end
    if queue.scopes ~= '' or queue.reserve > 0 or #names > 0 then
      queue.name = queue.scopes .. '~' .. queue.reserve .. '~' .. table.concat(names, ',')
    end
    return first + count
  end

  -- readIndex reads what is told of the accounts' index, from a place in ARGV on.
  local function readIndex(request, first)
    request.told, request.members = '', first + 1
    if not ARGV[first] then
      return
    end
    local told, number = string.match(ARGV[first], '^(%l+) ?(%d*)$')
    request.told = told
    if told == 'behind' then
      request.behind = {
        score = whole(number, 'a score', 0, MODULUS + MODULUS), member = ARGV[first + 1],
        before = ARGV[first + 2], newest = ARGV[first + 3],
      }
      if #ARGV ~= first + 3 then
        bad = bad or 'ERR ration: a search goes on with a score and three members'
      end
    elseif told == 'all' or told == 'copy' then
      request.count = whole(number, 'the number of accounts', 1, 1000000)
      request.old = told == 'copy' and string.match(ARGV[first + 1] or '', '^%x+%*%d+$')
      if told == 'copy' and not request.old then
        bad = bad or 'ERR ration: an index is made from that of other accounts'
      end
    elseif told ~= 'part' then
      bad = bad or 'ERR ration: what is told of an index is \'part\', \'all N\', \'copy N\' or \'behind SCORE\''
    end
  end

  -- checkMembers checks what is told of the members of the index.
  local function checkMembers(request, setCount)
    local pattern = '^(%d+):.+$'
    if request.told == 'copy' then
      request.members, pattern = request.members + 1, '^[-+](%d+):.+$'
    end
    for i = request.members, #ARGV do
      local number = string.match(ARGV[i], pattern)
      number = number and tonumber(number)
      local maybeNone = request.told == 'behind' and i > request.members and ARGV[i] == ''
      if (not number or number < 1 or number > setCount) and not maybeNone then
        bad = bad or 'ERR ration: an account has no set of limits'
      end
    end
  end

  -- readRequest returns the request, or nil. Whether it is right, bad tells.
  function readRequest()
    local given, reckoned, before, recovered, found, card, lead = struct.unpack('>I8I8I8I8I8I8I8', ARGV[1], 17)
    for _, instant in ipairs({given, reckoned, before, recovered, found, card, lead}) do
      among(instant, 'an instant', 0, 4503599627370496)
    end
    local index, others, setCount, zoneCount, sharedCount, reserve, scopes, firstSet = string.match(
      ARGV[3] or '', '^([%x*]*) ([%w_,-]*) (%d+) (%d+) (%d+) (%d+) ([%w%._,-]*) (%d.*)$')
    local digest, units = string.match(index or '', '^(%x+)%*(%d+)$')
    if not index or index ~= '' and not digest then
      bad = 'ERR ration: a booking tells of its accounts in eight parts'
      return nil
    end
    local request = {
      given = given, reckoned = reckoned > 0 and reckoned, before = before > 0 and before,
      recovered = recovered, found = found > 0 and found,
      queue = {name = '', scopes = scopes, reserve = whole(reserve, 'the share kept', 0, 999)},
      card = card, lead = lead, meters = {}, shared = {}, most = COSTLIEST, index = false, excluded = {}, told = '',
    }
    setCount = whole(setCount, 'the number of limit sets', 1, 10000)
    local first = readZones(4, zoneCount)
    request.setOf = setReader(firstSet, setCount, first)
    first = readShared(request, first + setCount - 1, sharedCount)
    request.costs, request.units, request.waits = readBookings(ARGV[1], #request.meters)
    if not digest then
      request.single, request.members = ARGV[first] and '1:' .. ARGV[first], first + 1
      if #ARGV ~= first or ARGV[first] == '' then
        bad = bad or 'ERR ration: exactly one account goes without an index'
      end
    else
      -- Its scores are of slots for so many units: one that costs less may have an earlier one.
      request.digest = digest
      request.least = whole(units, 'the units of the index', 1, math.min(COSTLIEST, unpack(request.costs)))
      request.pools = {base .. ':pool:', request.queue.name ~= '' and ':' .. request.queue.name or ''}
      request.index = table.concat(request.pools, index)
      for accountID in string.gmatch(others, '[^,]+') do
        request.excluded[accountID] = true
      end
      readIndex(request, first)
    end
    checkMembers(request, setCount)
    return request
  end
end
