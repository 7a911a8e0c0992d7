import type { FastifyInstance } from 'fastify'
import type { ConsoleDone } from '../../lib/pages/console/index.ts'
import { type PersonAct, personPage } from '../../lib/pages/console/person.ts'
import type { Operation } from '../../plugins/access-table.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import type { SignInAnswer } from '../../schemas/answers.ts'
import type { ClientItem } from '../../schemas/client.ts'
import type { Event } from '../../schemas/event.ts'
import type { Identity } from '../../schemas/identity.ts'
import type { UserMail, UserSessions } from '../../schemas/support.ts'
import type { Unlocked } from '../../schemas/unlock.ts'
import type { UserItem } from '../../schemas/user.ts'
import { ApiError } from './api.ts'
import { quote } from './client.ts'
import { toRefusedForm } from './conflicts.ts'
import { type AddPage, type ConsoleForm, type Desk, type Shown, type Submitted, createCall } from './page.ts'
import { OTHERS_CLIENTS } from './sections.ts'

/** Events that the page shows; the others are a page of their own. */
const EVENTS = 20

/** Commands that do the same as the page. */
const COMMANDS = [
  'show', 'why', 'sessions', 'mails', 'unlock', 'recover', 'factors reset', 'sessions end', 'roles', 'disable', 'enable', 'email release', 'delete'
]

/** Clients that the page shows. */
const CLIENTS = 20

/** What can be done, each with the operation that it calls. */
const ACTS: Readonly<Record<PersonAct, Operation>> = {
  profile: 'patchUser',
  roles: 'patchUser',
  info: 'patchUser',
  attributes: 'createUser',
  disable: 'patchUser',
  unlock: 'unlockUser',
  recover: 'recoverUser',
  reset: 'resetFactors',
  end: 'endSessionsOfUser',
  disconnect: 'removeIdentityOfUser',
  release: 'releaseAddress',
  remove: 'deleteUser',
  invite: 'inviteUser'
}

const readId = ({ request }: Pick<Desk, 'request'>): string => (request.params as { userId: string }).userId

const toApi = (desk: Pick<Desk, 'request'>, rest = ''): string => `/user/${encodeURIComponent(readId(desk))}${rest}`

/** A value of the form that is JSON. @throws ApiError that names the field */
function readJson ({ request }: Pick<Desk, 'request'>, name: string): object {
  try {
    const value: unknown = JSON.parse(readField(request, name))
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch {
    // Told below.
  }
  throw new ApiError('ErrParam', `${name}: must be a JSON object`)
}

/** What is stored of the fields that forms change, as the forms show it. */
function toTexts ({ name, email = '', roles, info, attributes = {} }: UserItem): Record<string, string> {
  const rest = Object.entries({ roles, info, attributes }).map(([field, value]) => [field, JSON.stringify(value, null, 2)])
  return { name, email, ...Object.fromEntries(rest) as Record<string, string> }
}

async function showPerson (desk: Desk, link?: string): Promise<Shown> {
  const { may } = desk
  const user_id = readId(desk)
  // First: what the reader may not read, or what is not there, is answered like this alone.
  const { data: user, tag = '' } = await desk.call<UserItem>({ path: toApi(desk), query: { fields: 'expired,disabled' } })
  // The API has other operations at the names of some ids.
  if (user.user_id !== user_id) throw new ApiError('ErrNotFound', 'user: no such user')
  const [answer, sessions, identities, mails, clients, events] = await Promise.all([
    desk.read<SignInAnswer>('explainSignIn', { path: toApi(desk, '/sign-in') }),
    desk.read<UserSessions>('listSessionsOfUser', { path: toApi(desk, '/sessions') }),
    desk.read<{ identities: Identity[] }>('listIdentitiesOfUser', { path: toApi(desk, '/identities') }),
    desk.read<{ mails: UserMail[] }>('listMailsOfUser', { path: toApi(desk, '/mails') }),
    may(OTHERS_CLIENTS)
      ? desk.read<ClientItem[]>('listClients', { path: '/client/list', query: { user: user_id, fields: 'name', limit: String(CLIENTS) } })
      : undefined,
    desk.read<Event[]>('listEvents', { path: '/event/list', query: { user: user_id, limit: String(EVENTS) } })
  ])
  const isInvited = answer?.data.reasons.some(({ reason }) => reason === 'invitation_open') === true
  const isOffered = ([name, operation]: [PersonAct, Operation]) => may(operation) && (name !== 'invite' || isInvited)
  const acts = (Object.entries(ACTS) as [PersonAct, Operation][]).filter(isOffered).map(([name]) => name)
  const commands = COMMANDS.map((command) => `user ${command} ${quote(user.account)}`)
  return (view, context) => personPage({ ...view, commands }, {
    user,
    tag,
    answer: answer?.data,
    sessions: sessions?.data,
    identities: identities?.data.identities,
    mails: mails?.data.mails,
    clients: clients?.data,
    mayPreview: may('previewToken'),
    events: events?.data,
    acts,
    refused: toRefusedForm(desk, toTexts(user)),
    link
  }, context)
}

/** A form that changes fields of the user, if nobody else has changed them since they were shown. */
const patch = (done: ConsoleDone, readBody: (desk: Desk) => object): ConsoleForm => createCall('patchUser', done, (desk) => {
  const match = readField(desk.request, 'match')
  return { method: 'PATCH', path: toApi(desk), body: readBody(desk), ...(match !== '' && { match }) }
})

/** A form that calls one operation about the person. */
const call = (needs: Operation, done: ConsoleDone, method: 'POST' | 'DELETE', toRest: (desk: Desk) => string): ConsoleForm =>
  createCall(needs, done, (desk) => ({ method, path: toApi(desk, toRest(desk)) }))

/** A form that sends a link, or makes one to hand over. */
const send = (needs: Operation, done: ConsoleDone, rest: string): ConsoleForm => ({
  needs,
  async submit (desk): Promise<Submitted> {
    const { data: { link } } = await desk.call<{ link?: string }>({ method: 'POST', path: toApi(desk, rest) })
    return link === undefined ? { done } : { shown: await showPerson(desk, link) }
  }
})

const readPart = ({ request }: Desk, name: string): string => encodeURIComponent(readField(request, name).slice(0, 128))

const FORMS: Readonly<Record<string, ConsoleForm>> = {
  profile: patch('saved', (desk) => {
    const { request } = desk
    const email = readField(request, 'email').trim()
    return {
      data: {
        name: readField(request, 'name').trim(),
        ...(email !== '' && desk.may('createUser') && { email }),
        ...(readField(request, 'verified') !== '' && { email_verified: true })
      }
    }
  }),
  roles: patch('saved', (desk) => ({ data: { roles: readJson(desk, 'roles') } })),
  info: patch('saved', (desk) => ({ data: { info: readJson(desk, 'info') } })),
  attributes: patch('saved', (desk) => ({ data: { attributes: readJson(desk, 'attributes') } })),
  disable: patch('disabled', () => ({ disable: true })),
  enable: patch('enabled', () => ({ disable: false })),
  unlock: {
    needs: 'unlockUser',
    async submit (desk) {
      const { data: { opened } } = await desk.call<Unlocked>({ method: 'POST', path: toApi(desk, '/unlock') })
      return { done: opened.length > 0 ? 'unlocked' : 'nothing-locked' }
    }
  },
  recover: send('recoverUser', 'recovery', '/recovery'),
  reset: {
    needs: 'resetFactors',
    async submit (desk) {
      const { data: { link } } = await desk.call<{ link?: string }>({ method: 'POST', path: toApi(desk, '/factors/reset') })
      return link === undefined ? { done: 'factors' } : { shown: await showPerson(desk, link) }
    }
  },
  invite: {
    needs: 'inviteUser',
    async submit (desk) {
      const { data: { account } } = await desk.call<UserItem>({ path: toApi(desk) })
      const { data: { link } } = await desk.call<{ link?: string }>({ method: 'POST', path: '/user/invite', body: { data: { account } } })
      return link === undefined ? { done: 'invited' } : { shown: await showPerson(desk, link) }
    }
  },
  end: call('endSessionOfUser', 'session', 'DELETE', (desk) => `/sessions/${readPart(desk, 'session')}`),
  'end-all': call('endSessionsOfUser', 'sessions', 'DELETE', () => '/sessions'),
  disconnect: call('removeIdentityOfUser', 'identity', 'DELETE', (desk) => `/identities/${readPart(desk, 'identity')}`),
  release: call('releaseAddress', 'released', 'POST', () => '/email/release'),
  remove: {
    needs: 'deleteUser',
    async submit (desk) {
      const { data: { account } } = await desk.call<UserItem>({ path: toApi(desk) })
      if (readField(desk.request, 'typed').trim() !== account) throw new ApiError('ErrParam', 'typed: must be the account')
      await desk.call({ method: 'DELETE', path: toApi(desk), query: { clients: readField(desk.request, 'clients') || undefined } })
      return { done: 'deleted', to: '/people' }
    }
  }
}

/** The page of one person. */
export function personPages (_app: FastifyInstance, add: AddPage): void {
  add({
    path: '/people/:userId',
    section: 'people',
    needs: 'getUser',
    show: async (desk) => await showPerson(desk),
    forms: FORMS
  })
}
