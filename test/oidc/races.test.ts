import t, { type Test } from 'tap'
import { type Answer, askCode, getCode } from './harness.ts'
import { type Case, type Place, onBothStores, start, take } from './race-case.ts'

// Each order needs a new sign-in, which takes long on a slow machine.
t.setTimeout(480_000)

/** More store operations than any request here makes. */
const MANY = 60

const ADMIN = { user_id: 'nobody', isAdmin: true }

/** Changes that revoke every earlier token. Undoing one must not revive any. */
const ENDINGS: Record<string, { end: (c: Case) => Promise<unknown>, undo?: (c: Case) => Promise<unknown> }> = {
  'a password change': {
    end: ({ kit, user }) => kit.app.identity.users.patchOwn(user.user_id, { data: { password: 'another' } }),
    undo: ({ kit, user }) => kit.app.identity.users.patchOwn(user.user_id, { data: { password: user.password } })
  },
  disabling: {
    end: ({ kit, user }) => kit.app.identity.users.patch(user.user_id, { disable: true }, ADMIN),
    undo: ({ kit, user }) => kit.app.identity.users.patch(user.user_id, { disable: false }, ADMIN)
  },
  'ending all sessions': { end: ({ kit, user }) => kit.app.identity.tokenSessions.end(user.user_id) },
  'a new secret': {
    end: ({ kit, app }) => kit.app.identity.clients.patch(app.client_id, { regen_secret: true }, ADMIN),
    undo: async ({ kit, app }) => { app.client_secret = (await kit.app.identity.clients.require(app.client_id, ADMIN)).clientSecret ?? '' }
  },
  'deleting the client': {
    end: ({ kit, app }) => kit.app.identity.clients.remove(app.client_id, ADMIN),
    undo: async (c) => { c.app = await c.register() }
  },
  'deleting the user': {
    end: ({ kit, user }) => kit.app.identity.users.remove(user.user_id, ADMIN),
    undo: async (c) => {
      const { kit, user } = c
      Object.assign(user, await kit.app.identity.users.create({ data: { account: user.account, password: user.password } }))
      c.app = await c.register()
    }
  }
}

/** Requests that race with a revocation. Each is prepared before it, and resolves to its answer. */
const REQUESTS: Record<string, (c: Case) => Promise<() => Promise<Answer>>> = {
  'a code exchange': async (c) => {
    const code = await getCode(c, c.app)
    return async () => await take(c, code)
  },
  'a refresh': async (c) => {
    const { kit: { app: { identity } }, user, app } = c
    const { refresh_token = '' } = await identity.tokens.mint({ user_id: user.user_id, client_id: app.client_id, refresh: true })
    return async () => await take(c, { grant_type: 'refresh_token', refresh_token })
  },
  'a sign-in and its exchange': async (c) => async () => {
    try {
      return await take(c, await getCode(c, c.app))
    } catch {
      return { status: 400, headers: new Headers(), body: {} }
    }
  },
  'client credentials': async (c) => async () => await take(c, { grant_type: 'client_credentials' })
}

/** Pairs in which the request may succeed after the revocation. */
const RENEWED: Record<string, string[]> = {
  'a sign-in and its exchange': ['a new secret', 'ending all sessions'],
  'client credentials': ['a password change', 'ending all sessions']
}

/** What engines do differently is how they change a record of each kind: on MongoDB, one ending of each kind suffices. */
const OF_EACH_KIND = ['a password change', 'a new secret', 'deleting the client', 'deleting the user']

async function findSurvivor (c: Case, { body }: Answer): Promise<string | undefined> {
  const { access_token, refresh_token } = body as Record<string, string | undefined>
  if (access_token !== undefined && (await c.get('tokeninfo', access_token)).status !== 401) return 'an access token'
  if (refresh_token === undefined) return
  const again = await take(c, { grant_type: 'refresh_token', refresh_token })
  if (again.status === 200) return 'a refresh token'
}

/** Whoever comes in time is answered, and whoever comes too late is refused. */
const BOTH = ['answered', 'refused']

const nameOutcome = (answer: Answer | undefined): string => answer?.status === 200 ? 'answered' : 'refused'

function race (t: Test, place: Place, store: 'sqlite' | 'mongodb'): void {
  const endings = store === 'mongodb' ? OF_EACH_KIND : Object.keys(ENDINGS)
  for (const [request, prepare] of Object.entries(REQUESTS)) {
    t.test(`${request} during a revocation: no valid token in any order`, async (t) => {
      const c = await start(t, place)
      // The cleanup may be interrupted anywhere: the one write must suffice.
      c.interposed.stopSweeping()
      for (const ending of endings) {
        if (RENEWED[request]?.includes(ending)) continue
        const { end, undo } = ENDINGS[ending]!
        const survivors: string[] = []
        const outcomes = new Set<string>()
        let orders = 0
        for (let k = 0; k < MANY; k++) {
          const run = await prepare(c)
          await c.kit.app.identity.tokens.settle()
          // With too many pending events, a change of the user would be refused.
          await c.kit.app.identity.events.flush()
          let answer: Answer | undefined
          const fired = await c.interposed.at(k, () => end(c), async () => { answer = await run() })
          if (!fired) await end(c)
          await undo?.(c)
          orders++
          outcomes.add(nameOutcome(answer))
          const survivor = await findSurvivor(c, answer as Answer)
          if (survivor !== undefined) survivors.push(`${survivor} of order ${k}`)
          if (!fired) break
        }
        t.strictSame(survivors, [], `${ending}: ${request}`)
        t.strictSame([...outcomes].sort(), BOTH, `${ending}: ${request}`)
        t.ok(orders > 2 && orders < MANY, `${ending}: ${orders} orders`)
      }
    })
  }

  t.test('a logout during a refresh: no valid token in any order', async (t) => {
    const c = await start(t, place)
    const { tokens } = c.kit.app.identity
    const outcomes = new Set<string>()
    let k = 0
    for (let fired = true; fired; k++) {
      const { access_token, refresh_token = '' } = await tokens.mint({ user_id: c.user.user_id, client_id: c.app.client_id, refresh: true })
      const { token } = await tokens.authenticate(access_token)
      let answer: Answer | undefined
      fired = await c.interposed.at(k, () => tokens.revoke(token), async () => { answer = await take(c, { grant_type: 'refresh_token', refresh_token }) })
      if (!fired) await tokens.revoke(token)
      outcomes.add(nameOutcome(answer))
      t.equal(await findSurvivor(c, answer as Answer), undefined, `order ${k}`)
    }
    t.ok(k > 5, `${k} orders`)
    t.strictSame([...outcomes].sort(), BOTH)
  })

  t.test('a sign-out during an authorization of the same browser: no sign-in and no valid token in any order', async (t) => {
    const c = await start(t, place)
    const { store } = c.kit.app.identity
    const outcomes = new Set<string>()
    let k = 0
    for (let fired = true; fired; k++) {
      const browser = c.browser()
      await getCode(c, c.app, { scope: 'openid' }, browser)
      const page = await browser.open('/api/v1/auth/session/end')
      const { url, verifier } = askCode(c.app, { scope: 'openid', prompt: 'none' })
      let code: string | null | undefined
      const signOut = async () => { t.equal((await page.submit({ logout: 'yes' })).title, 'Signed out') }
      fired = await c.interposed.at(k, signOut, async () => { code = (await browser.open(url)).left?.searchParams.get('code') })
      if (!fired) await signOut()
      t.equal(await store.collection('sign_in_sessions').count({ equal: { user_id: c.user.user_id } }), 0, `order ${k}: no sign-in is left`)
      outcomes.add(typeof code === 'string' ? 'a code' : 'none')
      if (typeof code !== 'string') continue
      const answer = await take(c, { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: c.app.redirect_uri })
      t.equal(await findSurvivor(c, answer), undefined, `order ${k}`)
    }
    t.ok(k > 5, `${k} orders`)
    t.strictSame([...outcomes].sort(), ['a code', 'none'])
  })

  t.test('two concurrent uses of a code: no valid token in any order', async (t) => {
    const c = await start(t, place)
    let k = 0
    for (let fired = true; fired; k++) {
      const code = await getCode(c, c.app)
      let first: Answer | undefined
      let second: Answer | undefined
      const again = async () => { second = await take(c, code) }
      fired = await c.interposed.at(k, again, async () => { first = await take(c, code) })
      if (!fired) await again()
      for (const answer of [first, second]) t.equal(await findSurvivor(c, answer as Answer), undefined, `order ${k}`)
    }
    t.ok(k > 5)
  })
}

onBothStores(t, race)
