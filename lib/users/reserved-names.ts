/**
 * Names that people take for somebody with power, or for nobody: of roles, of mailboxes (RFC 2142), and of accounts of systems that apps
 * may key people by.
 */
const RESERVED = new Set([
  'abuse', 'account', 'accounts', 'adm', 'admin', 'administrator', 'administrators', 'admins', 'all', 'anonymous', 'api', 'backup',
  'billing', 'bin', 'bot', 'contact', 'daemon', 'docker', 'everybody', 'everyone', 'ftp', 'games', 'guest', 'help', 'helpdesk',
  'hostmaster', 'info', 'irc', 'jovyan', 'legal', 'list', 'lp', 'mail', 'mailerdaemon', 'man', 'manager', 'managers', 'marketing', 'me',
  'mod', 'moderator', 'moderators', 'mysql', 'news', 'nobody', 'noc', 'noreply', 'null', 'official', 'oidc', 'operator', 'operators',
  'owner', 'postgres', 'postmaster', 'privacy', 'proxy', 'public', 'redis', 'root', 'sales', 'security', 'self', 'service', 'services',
  'signin', 'signup', 'sshd', 'staff', 'su', 'sudo', 'superadmin', 'superuser', 'support', 'sync', 'sys', 'sysadmin', 'sysop', 'system',
  'team', 'undefined', 'usenet', 'user', 'users', 'uucp', 'webmaster', 'www', 'wwwdata'
])

/** The form of our ids, which an account is called by when its name goes to somebody else. */
const ID = /^[0-7][0-9a-hjkmnp-tv-z]{25}[0-9a-z]{8}$/

/** A name as people read it. */
const simplify = (name: string): string => name.toLowerCase().replaceAll(/[-_]/g, '')

/**
 * Whether a stranger may not choose this name.
 * @param roles the names of roles that the configuration knows
 */
export function isReserved (account: string, roles: readonly string[]): boolean {
  const name = simplify(account)
  return RESERVED.has(name) || ID.test(account) || roles.some((role) => simplify(role) === name)
}
