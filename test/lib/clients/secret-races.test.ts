import t from 'tap'
import { createRandom, exhaust } from '../../helpers/scheduler.ts'
import { openSecretRaces } from '../../helpers/secret-races.ts'

// A secret or a key is removed while requests use it. test/long/secrets.ts tries 10,000 orders.

t.test('no token of a removed secret or key survives, in any order', async (t) => {
  const { play, scheduler, close } = await openSecretRaces()
  t.teardown(close)
  scheduler.isShared = ({ collection }) => collection === 'clients' || collection === 'access_tokens'
  for (const which of ['named', 'first', 'key'] as const) {
    let got = 0
    const { orders: runs, complete } = await exhaust({ least: 1, most: 20_000 }, async (choose) => {
      const outcome = await play(which, 1, undefined, choose)
      got += outcome.got
      if (outcome.survivors > 0) t.fail(`a token of the credential '${which}' survived`, { order: outcome.order.split('\n') })
    })
    t.ok(complete, `${which}: all ${runs} orders`)
    t.ok(got > 0, 'who comes in time is told a token')
  }
})

t.test('nor beside other changes', async (t) => {
  const { play, close } = await openSecretRaces()
  t.teardown(close)
  for (const other of ['adds another', 'renames the client', 'removes it too'] as const) {
    for (let seed = 1; seed <= 20; seed++) {
      const { survivors, order } = await play((['first', 'named', 'key'] as const)[seed % 3]!, 3, other, createRandom(seed))
      if (survivors > 0) t.fail(`seed ${seed}: ${other}`, { order: order.split('\n') })
    }
    t.pass(other)
  }
})
