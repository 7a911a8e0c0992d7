import type { Services } from '../../lib/identity.ts'
import type { RequestOptions } from '../../lib/ways/passkeys.ts'
import type { AnswerChanges } from '../../testing/index.ts'

/** The browser that asks. */
export const BROWSER = 'a browser'

/** What a tampered assertion is made with. */
export interface Tampering {
  passkeys: Services['passkeys']
  advance (milliseconds: number): void
  /** An assertion of the user's passkey. `changes` are signed, which only an authenticator in software does. */
  get (options: Pick<RequestOptions, 'challenge' | 'rpId'>, changes?: AnswerChanges): Promise<string> | string
  /** An assertion of another user's passkey. */
  getOther (options: Pick<RequestOptions, 'challenge' | 'rpId'>): Promise<string> | string
  /** The id and the handle of the other user. */
  other: { user_id: string, handle: string }
}

type Message = { id: string, rawId: string, type: string, response: Record<string, string> }

/** Changes an assertion after it was signed. */
function change (text: string, edit: (message: Message) => void): string {
  const message = JSON.parse(text) as Message
  edit(message)
  return JSON.stringify(message)
}

function editBytes (text: string, field: string, edit: (bytes: Buffer) => void): string {
  return change(text, ({ response }) => {
    const bytes = Buffer.from(response[field]!, 'base64url')
    edit(bytes)
    response[field] = bytes.toString('base64url')
  })
}

const flip = (at: number) => (bytes: Buffer) => { bytes[at < 0 ? bytes.length + at : at]! ^= 1 }

interface Row {
  name: string
  /** Whether the authenticator signs what no browser would. */
  isSigned?: boolean
  make: (tampering: Tampering) => Promise<string> | string
}

const ask = async ({ passkeys }: Tampering) => await passkeys.ask('begin', BROWSER)

const signed = (name: string, changes: AnswerChanges): Row => ({ name, isSigned: true, make: async (tampering) => await tampering.get(await ask(tampering), changes) })
const edited = (name: string, edit: (text: string, tampering: Tampering) => string | Promise<string>): Row => (
  { name, make: async (tampering) => await edit(await tampering.get(await ask(tampering)), tampering) })
const asked = (name: string, find: (tampering: Tampering) => Promise<{ challenge: string }>): Row => (
  { name, make: async (tampering) => await tampering.get({ rpId: tampering.passkeys.party!.id, ...await find(tampering) }) })

/** Assertions of which each is refused where a sign-in begins. */
export const TAMPERED: readonly Row[] = [
  asked('a challenge that the service has not issued', async () => ({ challenge: Buffer.alloc(54, 7).toString('base64url') })),
  asked('a challenge with another time', async (tampering) => {
    const bytes = Buffer.from((await ask(tampering)).challenge, 'base64url')
    flip(5)(bytes)
    return { challenge: bytes.toString('base64url') }
  }),
  asked("another browser's challenge", async ({ passkeys }) => await passkeys.ask('begin', 'another browser')),
  asked('a challenge for a second step', async ({ passkeys, other }) => await passkeys.ask('second', BROWSER, other.user_id)),
  asked('a challenge for the proof of an operation', async ({ passkeys, other }) => await passkeys.ask('confirm', BROWSER, other.user_id)),
  asked('a challenge for an enrolment', async ({ passkeys }) => await passkeys.askNew({ id: 'x', account: 'x', name: '' } as never, BROWSER)),
  edited('a challenge that has expired', (text, { advance }) => {
    advance(5 * 60_000)
    return text
  }),
  edited('a replay', async (text, { passkeys }) => {
    if ('refused' in await passkeys.verify('begin', BROWSER, text)) throw new Error('the first use was refused')
    return text
  }),
  signed('another site', { origin: 'https://id.example' }),
  signed('another port of the host', { origin: 'http://localhost:1' }),
  signed('another relying party', { rpId: 'id.example' }),
  signed('a frame of another site', { crossOrigin: true }),
  signed('the type of an enrolment', { type: 'webauthn.create' }),
  signed('nobody was there', { up: false }),
  signed('it can be backed up, and could not', { backupEligible: true }),
  signed('it is backed up, and cannot be', { backedUp: true }),
  signed('no user handle', { userHandle: null }),
  edited("another user's handle", (text, { other }) => change(text, ({ response }) => { response['userHandle'] = other.handle })),
  edited('another signature', (text) => editBytes(text, 'signature', flip(-1))),
  edited('the flag of a verified user, set after the signature', (text) => editBytes(text, 'authenticatorData', (bytes) => { bytes[32]! ^= 4 })),
  edited('another counter after the signature', (text) => editBytes(text, 'authenticatorData', flip(36))),
  edited('another origin after the signature', (text) => editBytes(text, 'clientDataJSON', (bytes) => { bytes[bytes.indexOf('http')]! ^= 1 })),
  edited("the signature of another user's passkey", async (text, tampering) => {
    const { response } = JSON.parse(await tampering.getOther(await ask(tampering))) as Message
    const { userHandle } = (JSON.parse(text) as Message).response
    return change(text, (message) => { message.response = { ...response, userHandle: userHandle! } })
  }),
  edited("the id of another user's passkey", async (text, tampering) => {
    const { id } = JSON.parse(await tampering.getOther(await ask(tampering))) as Message
    return change(text, (message) => { Object.assign(message, { id, rawId: id }) })
  }),
  edited('two ids', (text) => change(text, (message) => { message.rawId = `${message.id}A` })),
  edited('another type of credential', (text) => change(text, (message) => { message.type = 'password' })),
  edited('a field too few', (text) => change(text, ({ response }) => { delete response['signature'] })),
  edited('no JSON', (text) => text.slice(1)),
  edited('a list', (text) => `[${text}]`),
  edited('a text that is too long', (text) => change(text, (message) => { message.response['more'] = 'x'.repeat(9000) }))
]
