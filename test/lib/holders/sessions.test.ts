import t from 'tap'
import { createBrowsers } from '../../../lib/browsers/browsers.ts'
import { createIdentityEnds } from '../../../lib/sessions/identity-ends.ts'
import { checkHolders } from '../../helpers/holders.ts'
import { type Fields, at, openLifecycle } from '../tokens/harness.ts'

// Ann is `user_id`. What she gives belongs to Bob.

const { store, ownSessions, tokens, user_id, client_id, clients, add } = await openLifecycle(t)
const BOB = 'bob'
const NOT_FOUND = { code: 'ErrNotFound' }
let count = 0

/** A grant of a user under a browser's session. */
const grant = async (uid: string, fields: Fields) => await add('grants', { session_uid: uid, last_used_at: '2126-11-21T00:00:00.000Z', ...fields })

/** A sign-in session of a user that remembers a client. */
const signIn = async (uid: string, of: string) => await add('sign_in_sessions', { uid, user_id: of, payload: { authorizations: { [client_id]: { grantId: 'g' } } } })

/** Both call it by the same uid. */
const endBrowser = (uid: string) => ({
  other: async () => await ownSessions.endBrowser(user_id, uid),
  own: async () => await ownSessions.endBrowser(BOB, uid)
})

t.test('a browser with a record for each of its tabs is that of the person who signed in there last, whatever the order', async (t) => {
  const browsers = createBrowsers(store)
  const records = { early: { created_at: at(10) }, later: { user_id: BOB, created_at: at(0), signed_in_at: at(20) }, nobody: { user_id: undefined, created_at: at(30) } }
  for (const ids of [['early', 'later', 'nobody'], ['nobody', 'later', 'early']] as const) {
    const uid = `tabs ${count++}`
    for (const [index, name] of ids.entries()) await add('sign_in_sessions', { uid, payload: {}, ...records[name], id: `${uid} ${index}` })
    t.strictSame(await browsers.findSignIn(uid), { user_id: BOB, since: at(20) })
    t.strictSame([await browsers.isSignedIn(user_id, uid), await browsers.isSignedIn(BOB, uid), await browsers.isSignedIn('cy', uid)], [true, true, false])
  }
})

const { endIdentity, endSession } = createIdentityEnds({ store, tokens })

/** What an identity has proved in a sign-in. */
const proveBy = (way: string) => ({ kind: 'upstream', way, at: '2126-11-21T00:00:00.000Z' })

/** The end of one of two identities of the same person. */
const endOf = (way: string, other: string) => ({
  other: async () => await endIdentity(user_id, other, true, () => true),
  own: async () => await endIdentity(user_id, way, true, () => true)
})

checkHolders(t, store, {
  'a browser in which another person is signed in': {
    refusal: NOT_FOUND,
    async hold () {
      const uid = `tab ${count++}`
      await signIn(uid, BOB)
      return endBrowser(uid)
    }
  },
  'a browser whose only bound session is of another person': {
    refusal: NOT_FOUND,
    async hold () {
      const uid = `tab ${count++}`
      await grant(uid, { user_id: BOB, bound: true })
      return endBrowser(uid)
    }
  },
  'a browser where another person has a bound session, and the caller one that is not bound': {
    refusal: NOT_FOUND,
    async hold () {
      const uid = `tab ${count++}`
      await grant(uid, { user_id: BOB, bound: true })
      await grant(uid, { bound: false })
      return endBrowser(uid)
    }
  },
  'a token session of another person with the same client': {
    refusal: NOT_FOUND,
    async hold () {
      const [of] = [await grant('tab', { user_id: BOB }), await grant('tab', {})]
      return { other: async () => await ownSessions.endTokenSession(user_id, of), own: async () => await ownSessions.endTokenSession(BOB, of) }
    }
  },
  "another person's connection to the same client, with their consent": {
    refusal: 'nothing happens',
    async hold () {
      await ownSessions.disconnect(user_id, client_id)
      await signIn(`tab ${count++}`, BOB)
      await grant('tab', { user_id: BOB })
      return { other: async () => await ownSessions.disconnect(user_id, client_id), own: async () => await ownSessions.disconnect(BOB, client_id) }
    }
  },
  'a browser in which the same person has signed in by another identity': {
    refusal: 'nothing happens',
    async hold () {
      await add('sign_in_sessions', { uid: `tab ${count++}`, proofs: [proveBy('one')], payload: {} })
      return endOf('one', 'two')
    }
  },
  'a token session that came of another identity of the same person': {
    refusal: 'nothing happens',
    async hold () {
      await grant('tab', { upstream_proof: proveBy('one'), bound: true })
      return endOf('one', 'two')
    }
  },
  'what came of another session at the same provider': {
    refusal: 'nothing happens',
    async hold () {
      await add('sign_in_sessions', { uid: `tab ${count++}`, upstream_sid: 'sid one', payload: {} })
      await grant('tab', { upstream_sid: 'sid one', bound: true })
      return { other: async () => await endSession('sid two', true), own: async () => await endSession('sid one', true) }
    }
  },
  'a token session of the same person with another client': {
    refusal: 'nothing happens',
    async hold () {
      const { clientId } = await clients.create({ data: { redirectUris: [], scopes: [], name: 'another app', userId: user_id } }, { user_id: 'admin', isAdmin: true })
      await grant('tab', { client_id: clientId })
      return { other: async () => await ownSessions.disconnect(user_id, client_id), own: async () => await ownSessions.disconnect(user_id, clientId) }
    }
  }
})
