import t from 'tap'
import { ticketError } from '../../lib/accounts/tickets.ts'
import { findMailbox } from '../../lib/users/addresses.ts'
import { type Choose, Scheduler, exhaust } from '../helpers/scheduler.ts'
import { openRules } from '../helpers/services.ts'

// Some seconds of work, on a machine with nothing else to do.
t.setTimeout(600_000)

/** Orders of one pair at most. */
const MOST_ORDERS = 20_000

const ADMIN = { user_id: 'admin', isAdmin: true }
const OLD = 'ann@example.com'
const NEW = 'new@example.com'
const THIEF = 'thief@example.com'

const scheduler = new Scheduler()
// No order of the other calls decides a race.
scheduler.isShared = ({ collection, method }) => collection === 'users' || (collection === 'tickets' && method !== 'delete' && method !== 'next' && method !== 'insert')
const { store, now, users, tokens, clients, records, tickets, openAccounts } = await openRules(t, { around: scheduler.around })
const mailed: string[] = []
const mail = { local: true, send: async ({ text }: { text: string }) => { mailed.push(/token=([\w-]+)/.exec(text)?.[1] ?? '') } }
/** Without mail, so that the orders are those of the operations only; and with it, for the scenes. */
const accounts = openAccounts()
const mailing = openAccounts({ mail })
/** Those of another process. */
const elsewhere = openAccounts()

async function reset (): Promise<string> {
  await Promise.all([records.users, store.collection('tickets')].map((collection) => collection.deleteMany({ before: { id: '~' } })))
  mailed.length = 0
  const { user_id } = await users.create({ data: { account: OLD, password: 'old' } })
  return user_id
}

const link = async (user_id: string, purpose: 'reset' | 'verify') => await tickets.issue({ purpose, user_id, user_epoch: (await records.users.get(user_id))!.epoch, address: OLD, mailed: true })

interface Outcome { [actor: string]: boolean }

/** Runs the actors in every order. `check` returns the fault of an outcome. */
async function race (name: string, prepare: () => Promise<{ actors: Record<string, () => Promise<unknown>>, check: (succeeded: Outcome) => Promise<string | undefined> }>, most = MOST_ORDERS): Promise<void> {
  await t.test(name, async (t) => {
    const outcomes = new Map<string, number>()
    const problems = new Set<string>()
    const { orders: runs, complete } = await exhaust({ least: 1, most: most }, async (choose: Choose) => {
      const { actors, check } = await prepare()
      const succeeded: Outcome = {}
      const watched = Object.fromEntries(Object.entries(actors).map(([actor, act]) => [actor, async () => {
        succeeded[actor] = await act().then(() => true, (error: { code?: string }) => {
          if (!['ErrTicket', 'USER_EXIST'].includes(String(error.code))) problems.add(`${actor}: ${String(error)}`)
          return false
        })
      }]))
      await scheduler.run(watched, choose)
      const problem = await check(succeeded)
      if (problem !== undefined) problems.add(`${problem}: ${JSON.stringify(succeeded)}`)
      const key = JSON.stringify(Object.entries(succeeded).sort())
      outcomes.set(key, (outcomes.get(key) ?? 0) + 1)
    })
    t.ok(complete || most < MOST_ORDERS, `${runs} orders: ${[...outcomes].map(([key, count]) => `${key} ${count}`).join(', ')}`)
    t.same([...problems], [])
  })
}

/** A link that still sets a password after the race has survived it. */
async function findSurvivor (links: string[]): Promise<string | undefined> {
  for (const token of links) if (await accounts.setPassword(token, 'survivor').then(() => true, () => false)) return 'a link has survived'
}

await race('of two resets one wins', async () => {
  const user_id = await reset()
  const [one, two] = [await link(user_id, 'reset'), await link(user_id, 'reset')]
  return {
    actors: { one: async () => await accounts.setPassword(one, 'one'), two: async () => await accounts.setPassword(two, 'two') },
    async check (succeeded) {
      if (succeeded.one === succeeded.two) return 'not one winner'
      if ((await records.users.get(user_id))?.password !== `strong ${succeeded.one ? 'one' : 'two'}`) return "not the winner's password"
      return await findSurvivor([one, two])
    }
  }
})

await race('one reset link that is sent to two processes sets one password', async () => {
  const user_id = await reset()
  const token = await link(user_id, 'reset')
  return {
    actors: { one: async () => await accounts.setPassword(token, 'one'), two: async () => await elsewhere.setPassword(token, 'two') },
    async check (succeeded) {
      if (succeeded.one === succeeded.two) return 'not one winner'
      return await findSurvivor([token])
    }
  }
})

await race('of a mailed link and an administrator, one verifies the address', async () => {
  const user_id = await reset()
  const token = await link(user_id, 'verify')
  return {
    actors: {
      link: async () => await accounts.verifyAddress(token),
      admin: async () => {
        const refused = (error: Error) => { throw error.message.endsWith('is verified already') ? ticketError() : error }
        await users.patch(user_id, { data: { email_verified: true } }, ADMIN).catch(refused)
      }
    },
    async check (succeeded) {
      if (succeeded.link === succeeded.admin) return 'not one winner'
      const { email, email_verified_at } = (await records.users.get(user_id))!
      if (email !== OLD || email_verified_at === undefined) return 'not verified'
      if (await accounts.verifyAddress(token).then(() => true, () => false)) return 'the link has survived'
    }
  }
})

await race('a reset never undoes a change of the password', async () => {
  const user_id = await reset()
  const token = await link(user_id, 'reset')
  return {
    actors: { reset: async () => await accounts.setPassword(token, 'reset'), change: async () => await users.patch(user_id, { data: { password: 'changed' } }, ADMIN) },
    async check (succeeded) {
      if (succeeded.change !== true) return 'the change failed'
      if ((await records.users.get(user_id))?.password !== 'strong changed') return 'the link was used after the change'
      return await findSurvivor([token])
    }
  }
})

await race('a reset never enables a user who is disabled, and leaves nobody signed in', async () => {
  const user_id = await reset()
  const token = await link(user_id, 'reset')
  const { clientId: client_id } = await clients.create({ data: { redirectUris: [], scopes: [], name: 'n' } }, ADMIN)
  const { access_token } = await tokens.mint({ user_id, client_id })
  return {
    actors: { reset: async () => await accounts.setPassword(token, 'reset'), disable: async () => await users.patch(user_id, { disable: true }, ADMIN) },
    async check () {
      if ((await records.users.get(user_id))?.disabled_at === undefined) return 'not disabled'
      await users.patch(user_id, { disable: false }, ADMIN)
      if (await Promise.resolve().then(() => tokens.authenticate(access_token)).then(() => true, () => false)) return 'a session has survived'
      return await findSurvivor([token])
    }
  }
})

await race('an undo wins over a further change of the address', async () => {
  const user_id = await reset()
  const askFor = async (address: string) => {
    await mailing.changeAddress(user_id, address)
    await mailing.outbox!.flush()
    return mailed.pop()!
  }
  await mailing.verifyAddress(await askFor(NEW), user_id)
  await mailing.outbox!.flush()
  const undo = mailed.pop()!
  const change = await askFor(THIEF)
  return {
    actors: { undo: async () => await accounts.undoChange(undo), change: async () => await accounts.verifyAddress(change, user_id) },
    async check (succeeded) {
      const user = await records.users.get(user_id)
      if (succeeded.undo !== true) return 'the undo failed'
      if (user === null || findMailbox(user) !== OLD || user.address_changes?.length !== 0) return 'the former address is not restored'
      if (await accounts.verifyAddress(change, user_id).then(() => true, () => false)) return 'the change has survived'
    }
  }
})

await race('of a sign-up and an invitation to the same address one makes the account', async () => {
  await reset()
  const token = await tickets.issue({ purpose: 'sign-up', address: NEW, mailed: true })
  return {
    actors: { 'sign-up': async () => await accounts.setPassword(token, 'mine'), invitation: async () => await accounts.inviteUser({ account: NEW }, ADMIN) },
    async check (succeeded) {
      if (succeeded['sign-up'] === succeeded.invitation) return 'not one winner'
      const user = await records.users.getBy('account', NEW)
      if (user?.password !== (succeeded.invitation ? '' : 'strong mine')) return "not the winner's account"
      return await findSurvivor([token])
    }
  }
})

await race('a link that was shown before a role has no effect after it', async () => {
  const user_id = await reset()
  const shown = [await link(user_id, 'reset'), await link(user_id, 'reset')]
  return {
    actors: {
      link: async () => await accounts.setPassword(shown[0]!, 'of the manager'),
      role: async () => await users.patch(user_id, { data: { roles: { admin: true } } }, ADMIN)
    },
    async check (succeeded) {
      const user = await records.users.get(user_id)
      if (user?.roles.admin !== true) return 'no role'
      if ((user.password === 'strong of the manager') !== succeeded.link) return 'not the password of the link'
      return await findSurvivor(shown)
    }
  }
})

await race('of two who take the same address, by a verification and by an account, one gets it', async () => {
  const user_id = await reset()
  await mailing.changeAddress(user_id, NEW)
  await mailing.outbox!.flush()
  const token = mailed.pop()!
  return {
    actors: { verification: async () => await accounts.verifyAddress(token, user_id), account: async () => await users.create({ data: { account: NEW, password: 'p' } }) },
    async check (succeeded) {
      if (succeeded.verification === succeeded.account) return 'not one winner'
    }
  }
})

await race('of the last two administrators who delete themselves at once, one stays', async () => {
  await reset()
  const admins = await Promise.all(['root', 'toor'].map((account) => users.create({ data: { account, password: 'p' } }, { roles: { admin: true } })))
  return {
    actors: Object.fromEntries(admins.map(({ user_id }, index) => [`admin ${index}`, async () => await accounts.deleteOwn(user_id).catch((error: { code: string }) => { if (error.code !== 'ErrPerm') throw error; throw Object.assign(new Error('refused'), { code: 'ErrTicket' }) })])),
    async check () {
      for await (const batch of records.users.stream()) if (batch.some(({ roles }) => roles.admin === true)) return
      return 'nobody is left'
    }
  }
}, 300)

t.test('an administrator whose many clients take long to remove stays when the other one leaves meanwhile', async (t) => {
  await reset()
  const [first, second] = await Promise.all(['root', 'toor'].map((account) => users.create({ data: { account, password: 'p' } }, { roles: { admin: true } })))
  let time = now()
  const slow = openAccounts({}, {
    now: () => time,
    clients: {
      ...clients,
      removeOwned: async (user_id, actor) => {
        if (user_id === first!.user_id) {
          time += 60_000
          await slow.deleteOwn(second!.user_id)
        }
        return await clients.removeOwned(user_id, actor)
      }
    }
  })
  await t.rejects(slow.deleteOwn(first!.user_id), { code: 'ErrPerm' })
  t.strictSame(await records.users.get(second!.user_id), null)
  t.match(await records.users.get(first!.user_id), { roles: { admin: true } })
})
