import t from 'tap'
import { findMailbox } from '../../lib/records/user.ts'
import { settleMails } from '../helpers/mails.ts'
import { type Scene, race } from '../helpers/race.ts'
import { Scheduler } from '../helpers/scheduler.ts'
import { openRules } from '../helpers/services.ts'

// Some seconds of work, on a machine with nothing else to do.
t.setTimeout(180_000)

const ADMIN = { user_id: 'admin', isAdmin: true }
const OLD = 'ann@example.com'
const NEW = 'new@example.com'
const THIEF = 'thief@example.com'

const scheduler = new Scheduler()
// No order of the other calls decides a race.
scheduler.isShared = ({ collection, method }) => collection === 'users' || (collection === 'tickets' && method !== 'delete' && method !== 'next' && method !== 'insert')
const { store, now, users, tokens, clients, records, tickets, events, openAccounts } = await openRules(t, { around: scheduler.around })
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

/** A race whose actors may be refused with these codes. */
async function play (name: string, expected: { least: number, outcomes: string[] }, prepare: () => Promise<Scene>): Promise<void> {
  await t.test(name, async (t) => await race(t, scheduler, { ...expected, refusals: ['ErrTicket', 'USER_EXIST', 'ErrPerm'] }, prepare))
}

/** A link that still sets a password after the race has survived it. */
async function findSurvivor (links: string[]): Promise<string | undefined> {
  for (const token of links) if (await accounts.setPassword(token, 'survivor').then(() => true, () => false)) return 'a link has survived'
}

await play('of two resets one wins', { least: 6, outcomes: ['one', 'two'] }, async () => {
  const user_id = await reset()
  const [one, two] = [await link(user_id, 'reset'), await link(user_id, 'reset')]
  return {
    actors: { one: async () => await accounts.setPassword(one, 'one'), two: async () => await accounts.setPassword(two, 'two') },
    async check ({ done }) {
      if ((await records.users.get(user_id))?.password !== `strong ${done.includes('one') ? 'one' : 'two'}`) return "not the winner's password"
      return await findSurvivor([one, two])
    }
  }
})

await play('one reset link that is sent to two processes sets one password', { least: 6, outcomes: ['one', 'two'] }, async () => {
  const user_id = await reset()
  const token = await link(user_id, 'reset')
  return {
    actors: { one: async () => await accounts.setPassword(token, 'one'), two: async () => await elsewhere.setPassword(token, 'two') },
    async check () {
      return await findSurvivor([token])
    }
  }
})

await play('a mailed link and an administrator verify the address, and the link is good only before', { least: 4, outcomes: ['admin', 'admin, link'] }, async () => {
  const user_id = await reset()
  const token = await link(user_id, 'verify')
  return {
    actors: {
      link: async () => await accounts.verifyAddress(token),
      admin: async () => await users.patch(user_id, { data: { email_verified: true } }, ADMIN)
    },
    async check () {
      const { email, email_verified_at } = (await records.users.get(user_id))!
      if (email !== OLD || email_verified_at === undefined) return 'not verified'
      if (await accounts.verifyAddress(token).then(() => true, () => false)) return 'the link has survived'
    }
  }
})

await play('a reset never undoes a change of the password', { least: 5, outcomes: ['change', 'change, reset'] }, async () => {
  const user_id = await reset()
  const token = await link(user_id, 'reset')
  return {
    actors: { reset: async () => await accounts.setPassword(token, 'reset'), change: async () => await users.patch(user_id, { data: { password: 'changed' } }, ADMIN) },
    async check () {
      if ((await records.users.get(user_id))?.password !== 'strong changed') return 'the link was used after the change'
      return await findSurvivor([token])
    }
  }
})

await play('a reset never enables a user who is disabled, and leaves nobody signed in', { least: 5, outcomes: ['disable', 'disable, reset'] }, async () => {
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

await play('an undo wins over a further change of the address', { least: 8, outcomes: ['change, undo', 'undo'] }, async () => {
  const user_id = await reset()
  const askFor = async (address: string) => {
    await mailing.changeAddress(user_id, address)
    await settleMails({ events, accounts: mailing })
    return mailed.pop()!
  }
  await mailing.verifyAddress(await askFor(NEW), user_id)
  await settleMails({ events, accounts: mailing })
  const undo = mailed.pop()!
  const change = await askFor(THIEF)
  return {
    actors: { undo: async () => await accounts.undo(undo), change: async () => await accounts.verifyAddress(change, user_id) },
    async check () {
      const user = await records.users.get(user_id)
      if (user === null || findMailbox(user) !== OLD || user.undos !== undefined) return 'the former address is not restored'
      if (await accounts.verifyAddress(change, user_id).then(() => true, () => false)) return 'the change has survived'
    }
  }
})

await play('of a sign-up and an invitation to the same address one makes the account', { least: 7, outcomes: ['invitation', 'sign-up'] }, async () => {
  await reset()
  const token = await tickets.issue({ purpose: 'sign-up', address: NEW, mailed: true })
  return {
    actors: { 'sign-up': async () => await accounts.setPassword(token, 'mine'), invitation: async () => await accounts.inviteUser({ account: NEW }, ADMIN) },
    async check ({ done }) {
      const user = await records.users.getBy('account', NEW)
      if (user?.password !== (done.includes('invitation') ? '' : 'strong mine')) return "not the winner's account"
      return await findSurvivor([token])
    }
  }
})

await play('a link that was shown before a role has no effect after it', { least: 5, outcomes: ['link, role', 'role'] }, async () => {
  const user_id = await reset()
  const shown = [await link(user_id, 'reset'), await link(user_id, 'reset')]
  return {
    actors: {
      link: async () => await accounts.setPassword(shown[0]!, 'of the manager'),
      role: async () => await users.patch(user_id, { data: { roles: { admin: true } } }, ADMIN)
    },
    async check ({ done }) {
      const user = await records.users.get(user_id)
      if (user?.roles.admin !== true) return 'no role'
      if ((user.password === 'strong of the manager') !== done.includes('link')) return 'not the password of the link'
      return await findSurvivor(shown)
    }
  }
})

await play('of two who take the same address, by a verification and by an account, one gets it', { least: 8, outcomes: ['account', 'verification'] }, async () => {
  const user_id = await reset()
  await mailing.changeAddress(user_id, NEW)
  await settleMails({ events, accounts: mailing })
  const token = mailed.pop()!
  return {
    actors: { verification: async () => await accounts.verifyAddress(token, user_id), account: async () => await users.create({ data: { account: NEW, password: 'p' } }) },
    async check () {
    }
  }
})

await play('of the last two administrators who delete themselves at once, one stays', { least: 7, outcomes: ['admin 0', 'admin 1'] }, async () => {
  await reset()
  const admins = await Promise.all(['root', 'toor'].map((account) => users.create({ data: { account, password: 'p' } }, { roles: { admin: true } })))
  return {
    actors: Object.fromEntries(admins.map(({ user_id }, index) => [`admin ${index}`, async () => await accounts.deleteOwn(user_id)])),
    async check () {
      for await (const batch of records.users.stream()) if (batch.some(({ roles }) => roles.admin === true)) return
      return 'nobody is left'
    }
  }
})

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
