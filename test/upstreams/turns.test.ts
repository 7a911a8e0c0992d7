import type { ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import t from 'tap'
import type { StartOptions } from '../../testing/index.ts'
import { createApp } from '../../testing/kit.ts'
import { settleAt } from '../helpers/turns.ts'
import { waitUntil } from '../helpers/wait.ts'
import type { Browser } from '../oidc/browser.ts'
import { type Harness, eachStore } from '../oidc/harness.ts'
import { post } from '../pages/visits.ts'
import { agree, answerOf, leave, readError, through } from './through.ts'

const START = '/api/v1/auth/upstream/test'
const PLACES = 20

t.setTimeout(120_000)

const refuse = (response: ServerResponse) => response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}')

const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })

/** A service whose provider holds the codes up that nobody has issued. */
async function open (start: (options: StartOptions) => Promise<Harness>) {
  const harness = await start({ app: createApp({ trustProxy: true }), rateLimit: 600, signUp: true, upstream: {} })
  const { upstream } = harness.kit
  const held: (() => void)[] = []
  let passedOn = 0
  let isOver = false

  /** Begins a sign-in, and gives its callback with a code that nobody has issued. */
  async function makeUp (address: string) {
    const browser = harness.browser()
    const { left } = await browser.open(START, from(address))
    const callback = `${START}/callback?${new URLSearchParams({ code: 'made up', state: left!.searchParams.get('state')!, iss: upstream.issuer })}`
    return { browser, bring: async () => await browser.open(callback, from(address)) }
  }

  return {
    harness,
    upstream,
    held,
    makeUp,
    /** How many codes that the provider issued have got their turn. */
    passed: () => passedOn,
    hold () {
      upstream.answer = (request, response) => {
        if (request.url !== '/token' || request.headers['x-passed-on'] !== undefined) return false
        void (async () => {
          const body = await text(request)
          if (body.includes('made')) return isOver ? refuse(response) : held.push(() => { refuse(response) })
          passedOn++
          const passed = await fetch(`${upstream.issuer}/token`, { method: 'POST', body, headers: { 'content-type': 'application/x-www-form-urlencoded', 'x-passed-on': 'yes' } })
          response.writeHead(passed.status, { 'content-type': 'application/json' }).end(await passed.text())
        })()
        return true
      }
    },
    release () {
      isOver = true
      for (const release of held.splice(0)) release()
    }
  }
}

eachStore(t, 'made-up codes from eight addresses hold all places', async (t, start) => {
  const { harness, upstream, held, makeUp, passed, hold, release } = await open(start)
  upstream({ sub: 'ann', email: 'ann@example.org', email_verified: true })
  t.match((await through(harness.browser(), START)).title, /Profile/, 'somebody who has an account')
  const attempts = await Promise.all(Array.from({ length: 60 }, async (_each, index) => await makeUp(`192.0.2.${index % 8}`)))
  hold()
  const brought = attempts.map(({ bring }) => bring())
  await waitUntil('all places are taken', () => held.length === PLACES)

  await t.test('twenty people still get their turn', async (t) => {
    let arrived = 0
    const people = Promise.all(Array.from({ length: 20 }, async (_each, index) => {
      const browser = harness.browser()
      const { left } = await browser.open(START, from(`198.51.100.${index}`))
      const answer = await answerOf(left)
      arrived++
      return await browser.open(answer, from(`198.51.100.${index}`))
    }))
    await waitUntil('all have come back from the provider', () => arrived === 20)
    await settleAt('calls', () => upstream.calls.length)
    let released = 0
    await waitUntil('each has had a turn', () => {
      if (passed() === 20) return true
      // Another code of the attackers has taken the place.
      if (held.length === PLACES) {
        released++
        held.shift()!()
      }
      return false
    })
    // On a busy machine the deadline of the calls may end one.
    for (const page of await people) t.notMatch(readError(page), /Many people are signing in/)
    t.ok(released < 20, `${released} places of the attackers became free meanwhile, and 40 more of them wait`)
  })

  release()
  for (const page of await Promise.all(brought)) t.match(readError(page), /isn’t responding as it should/)
})

eachStore(t, 'made-up codes from as many networks as may wait', async (t, start) => {
  const { harness, upstream, held, makeUp, hold, release } = await open(start)
  const known = harness.browser()
  upstream({ sub: 'ann', email: 'ann@example.org', email_verified: true })
  const profile = await through(known, START)
  t.match(profile.title, /Profile/)
  t.match((await post(profile, '/account/sign-out')).title, /Signed out/i)
  const attempts = await Promise.all(Array.from({ length: PLACES + 200 }, async (_each, index) => await makeUp(`10.0.${index}.1`)))
  const bring = async (browser: Browser, address: string) => {
    const { left } = await browser.open(START, from(address))
    return await browser.open(await answerOf(left), from(address))
  }
  hold()
  const brought = attempts.map(({ bring }) => bring())
  await waitUntil('all places are taken', () => held.length === PLACES)
  await waitUntil('strangers are many', async () => /Many people are signing in/.test(readError(await bring(harness.browser(), '198.51.100.1'))))
  // It takes the place of one that waits, and the next turn, while 190 wait on.
  const state = { isIn: false }
  const page = bring(known, '198.51.100.2').finally(() => { state.isIn = true })
  let released = 0
  await waitUntil('a browser that is known for an account is in', () => {
    if (held.length === PLACES && released < 10) {
      released++
      held.shift()!()
    }
    return state.isIn
  })
  t.match((await page).title, /Profile/, readError(await page))
  release()
  await Promise.all(brought)
})

eachStore(t, 'one network that fills the queue', async (t, start) => {
  const harness = await start({ signUp: true, upstream: {} })
  const { upstream } = harness.kit
  const held: (() => void)[] = []
  upstream({ sub: 'ann', email: 'ann@example.org', email_verified: true })
  const answers = await Promise.all(Array.from({ length: PLACES + 201 }, async () => {
    const browser = harness.browser()
    return { browser, answer: await answerOf(await leave(browser, START)) }
  }))
  let isHeld = true
  upstream.answer = ({ url }, response) => {
    if (url !== '/token' || !isHeld) return false
    held.push(() => response.destroy())
    return true
  }
  const last = answers.pop()!
  const others = answers.map(({ browser, answer }) => browser.open(answer))
  await waitUntil('all places are taken', () => held.length === PLACES)
  const page = await waitUntil('the queue is full', async () => {
    const opened = await last.browser.open(last.answer)
    return /Many people are signing in/.test(readError(opened)) && opened
  })
  isHeld = false
  for (const release of held.splice(0)) release()
  await Promise.all(others)
  const again = /<a class="button primary" href="([^"]*)"/.exec(page.text)?.[1]?.replaceAll('&amp;', '&') ?? ''
  t.match((await agree(await last.browser.open(again))).title, /Profile/, 'the same answer, brought again')
  t.match(readError(await last.browser.open(again)), /sign-in has expired/)
})
