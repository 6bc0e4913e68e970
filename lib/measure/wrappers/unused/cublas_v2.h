// Included by siboehm's header, which uses nothing of it. Found only where there is no real one.
#pragma once
