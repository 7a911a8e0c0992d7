import type { FastifyInstance } from 'fastify'
import { PAGE_PATHS } from '../lib/accounts/links.ts'
import type { Purpose } from '../lib/tickets/tickets.ts'
import { IdentityError } from '../lib/errors.ts'
import type { Way } from '../lib/pages/contract.ts'
import type { Look } from '../lib/pages/look.ts'
import type { Message } from '../lib/pages/texts/en.ts'
import { PageError } from './pages.ts'

const askAgain: Message = ({ links }) => links.askAgain

/**
 * Creates a function that turns the error of a used or expired link into a page with a way to another one. It knows the purpose of a
 * link by its path only, because the service knows no more of a link that has ended.
 */
export function createUsedLinks (
  { identity: { accounts } }: FastifyInstance, { getPath, look: { getHome } }: { getPath: () => string, look: Pick<Look, 'getHome'> }
) {
  const forgot = (text: Message): Way[] => accounts.isForgotOn ? [{ to: `${getPath()}${PAGE_PATHS.forgot}`, text }] : []
  const signUp = (path = `${getPath()}${PAGE_PATHS['sign-up']}`): Way[] => accounts.isSignUpOn ? [{ to: path, text: askAgain }] : []
  const home = (text: Message, path = ''): Way[] => getHome === undefined ? [] : [{ to: `${getHome()}${path}`, text }]
  const signIn = () => home(({ signIn }) => signIn.submit)
  const ways: Record<Purpose, (path?: string) => Way[]> = {
    reset: () => forgot(askAgain),
    'sign-up': (path) => [...signUp(path), ...signIn()],
    invite: () => [...signIn(), ...forgot(({ signIn }) => signIn.forgot)],
    verify: () => home(({ links }) => links.toAddress, '/email'),
    change: () => home(({ links }) => links.toAddress, '/email'),
    undo: () => forgot(({ signIn }) => signIn.forgot),
    enrol: () => []
  }
  /** @param path the page that asks for another link, if it is not the purpose's own */
  return (error: unknown, purpose: Purpose, path?: string): unknown => {
    if (!(error instanceof IdentityError) || error.code !== 'ErrTicket') return error
    return new PageError('ErrTicket', error.message, ({ links }) => purpose === 'invite' ? links.goneInvitation : links.gone, ways[purpose](path))
  }
}
