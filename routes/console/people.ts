import type { FastifyInstance } from 'fastify'
import { peoplePage } from '../../lib/pages/console/people.ts'
import { readParameter } from '../../plugins/parameters.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import type { UserItem } from '../../schemas/user.ts'
import { type AddPage, type Desk, type Shown, toPath } from './page.ts'

/** People on a page of the list. */
const LIMIT = 25

/** Seconds for a page of people with a part of an account. */
const DEADLINE = '2'

/** So far a count is exact. */
export const COUNTED = '10000'

export interface Counted { count: number, more?: true }

export const toCount = ({ count, more }: Counted): { count: number, isMore: boolean } => ({ count, isMore: more === true })

/** A text of the query; '' for none. */
export const readText = ({ request }: Pick<Desk, 'request'>, name: string, limit = 256): string => {
  const value = readParameter(request, name)
  return typeof value === 'string' ? value.slice(0, limit) : ''
}

/** The texts of a form, by its fields. Passwords are not shown again. */
export const readTyped = (typed: URLSearchParams): Record<string, string> =>
  Object.fromEntries([...typed].filter(([name]) => name !== 'password' && name !== 'xsrf'))

async function showPeople (desk: Desk, link?: string): Promise<Shown> {
  const { may, refused } = desk
  const [sought, isWithin] = [readText(desk, 'search'), readText(desk, 'within') !== '']
  const [after, before] = [readText(desk, 'after', 4096), readText(desk, 'before', 4096)]
  const filter = isWithin ? { contains: sought, deadline: DEADLINE } : { search: sought }
  const list = await desk.read<UserItem[]>('listUsers', { path: '/user/list', query: { ...filter, fields: 'disabled', limit: String(LIMIT), after, before } })
  // Who looks for a part of an account waits for one page, and not for a look at every account.
  const isCounted = list !== undefined && !(isWithin && sought !== '')
  const count = isCounted ? await desk.read<Counted>('countUsers', { path: '/user/count', query: { search: sought, max: COUNTED } }) : undefined
  return (view, context) => peoplePage(view, {
    users: list?.data,
    count: count && toCount(count.data),
    sought,
    isWithin,
    after: list?.after,
    before: list?.before,
    isFirst: after === '' && before === '',
    mayCreate: may('createUser'),
    mayInvite: may('inviteUser'),
    refused: refused && { action: refused.action, typed: readTyped(refused.typed) },
    link
  }, context)
}

/** The list of people, and how one is created. */
export function peoplePages (_app: FastifyInstance, add: AddPage): void {
  add({
    path: '/people',
    section: 'people',
    needs: ['listUsers', 'inviteUser', 'createUser', 'getUser'],
    commands: () => ['user list --search WORDS', 'user invite ACCOUNT', 'user create ACCOUNT'],
    show: async (desk) => await showPeople(desk),
    forms: {
      invite: {
        needs: 'inviteUser',
        async submit (desk) {
          const [account, name] = [readField(desk.request, 'account').trim(), readField(desk.request, 'name').trim()]
          const { data: { user_id, link } } = await desk.call<{ user_id: string, link?: string }>({
            method: 'POST', path: '/user/invite', body: { data: { account, ...(name !== '' && { name }) } }
          })
          if (link !== undefined) return { shown: await showPeople(desk, link) }
          return { done: 'invited', ...(desk.may('getUser') && { to: toPath('people', user_id) }) }
        }
      },
      create: {
        needs: 'createUser',
        async submit (desk) {
          const [account, name] = [readField(desk.request, 'account').trim(), readField(desk.request, 'name').trim()]
          const { data: { user_id } } = await desk.call<{ user_id: string }>({
            method: 'POST', path: '/user', body: { data: { account, password: readField(desk.request, 'password'), ...(name !== '' && { name }) } }
          })
          return { done: 'created', to: toPath('people', user_id) }
        }
      }
    }
  })
}
