package main

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration/internal/redisstore"
)

// needed are the commands of ration's scripts, with arguments by which Redis sees what is a key.
var needed = strings.Fields("time zadd zrem zcard zcount zscore zrange zrangebyscore zrevrangebyscore zremrangebyscore zremrangebyrank zunionstore " +
	"get set exists pexpire pttl hget hgetall hset hmget hdel unlink rename xadd xdel xlen xinfo|stream xrange xrevrange xtrim")

// lacking tells which commands the user may not run on a budget's keys. Redis has acl_check_cmd from 7.0 on.
var lacking = redis.NewScript(`
local lacks = {}
for _, command in ipairs(ARGV) do
  local name, sub = string.match(command, '^([^|]+)|?(.*)$')
  local allowed
  if name == 'time' then
    allowed = redis.acl_check_cmd(name)
  elseif sub ~= '' then
    allowed = redis.acl_check_cmd(name, sub, KEYS[1])
  else
    local args = {name, KEYS[1], KEYS[1], KEYS[1], KEYS[1]} -- as many as it takes
    while #args >= 2 do
      local known, may = pcall(redis.acl_check_cmd, unpack(args))
      if known then
        allowed = may
        break
      end
      table.remove(args)
    end
  end
  if not allowed then
    lacks[#lacks + 1] = command
  end
end
return lacks`)

// rights names the commands that the user lacks.
func (p *patient) rights(ctx context.Context) {
	args := make([]any, len(needed))
	for i, command := range needed {
		args[i] = command
	}
	lacks, err := lacking.Eval(ctx, p.client, []string{redisstore.BaseKey("doctor") + ":rights"}, args...).StringSlice()
	if err != nil || len(lacks) == 0 {
		return // the trial says what is wrong
	}
	p.add("rights", "wrong", "the user may not "+strings.Join(lacks, ", "), "ACL SETUSER NAME +"+strings.Join(lacks, " +")+" ~ration:*")
}
