/*
 * waits - a library that waits for the locks it is given: one function for each kind.
 *
 *	SLOW	loading it takes a tenth of a second, in the middle of the loader's work
 *	MIXED	the mutex is locked through the entry that tells its address, the others are not
 *	NEEDY	what another library takes its time for is looked up after the locks
 */
#include <pthread.h>
#include <semaphore.h>

#ifdef MIXED
__typeof__(pthread_mutex_lock) pthread_mutex_lock __attribute__((noplt));
#endif

int wait_mutex(pthread_mutex_t *mutex);
int wait_rwlock(pthread_rwlock_t *rwlock);
int wait_sem(sem_t *sem);
#ifdef SLOW
int chosen(void);
extern int (*const chosen_ones[])(void);
#endif

#ifdef NEEDY
extern const char chosen[];
const char *needed(void);

const char *needed(void)
{
	return chosen;
}
#endif

int wait_mutex(pthread_mutex_t *mutex)
{
	return pthread_mutex_lock(mutex) || pthread_mutex_unlock(mutex);
}

int wait_rwlock(pthread_rwlock_t *rwlock)
{
	return pthread_rwlock_wrlock(rwlock) || pthread_rwlock_unlock(rwlock);
}

int wait_sem(sem_t *sem)
{
	return sem_wait(sem) || sem_post(sem);
}

#ifdef SLOW
typedef int choice(void);

static int one(void)
{
	return 1;
}

/* Nothing of another file can be called from here. */
static choice *choose_one(void)
{
	for (volatile long i = 0; i < 40000000; i++)
		;
	return one;
}

choice chosen __attribute__((ifunc("choose_one")));
choice *const chosen_ones[] = { chosen };
#endif
