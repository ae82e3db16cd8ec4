package ration

import "github.com/ration-go/ration/internal/redisstore"

type RedisStore = redisstore.RedisStore
